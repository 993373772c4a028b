-- The lease exists while the row exists: its age is not looked at here.
-- ?1 instance, ?2 now
update async_command_instance set heartbeat_at = ?2 where id = ?1
