-- ?1 instance, ?2 name, ?3 now
insert into async_command_instance (id, name, started_at, heartbeat_at) values (?1, ?2, ?3, ?3)
