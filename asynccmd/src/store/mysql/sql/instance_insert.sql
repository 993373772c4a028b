-- instance, name, its stall timeout in microseconds
insert into async_command_instance (id, name, started_at, heartbeat_at, meta)
values (?, ?, utc_timestamp(6), utc_timestamp(6), json_object('stall', ?))
