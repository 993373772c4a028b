-- The other instances.
-- ?1 instance
select id, heartbeat_at from async_command_instance where id <> ?1
