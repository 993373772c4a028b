-- The lease exists while the row exists: its age is not looked at here.
-- instance
update async_command_instance set heartbeat_at = utc_timestamp(6) where id = ?
