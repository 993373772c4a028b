-- ?1 instance, ?2 name, ?3 now, ?4 its stall timeout in microseconds
insert into async_command_instance (id, name, started_at, heartbeat_at, meta)
values (?1, ?2, ?3, ?3, json_object('stall', ?4))
