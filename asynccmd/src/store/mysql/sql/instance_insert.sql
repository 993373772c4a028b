-- instance, name
insert into async_command_instance (id, name, started_at, heartbeat_at)
values (?, ?, utc_timestamp(6), utc_timestamp(6))
