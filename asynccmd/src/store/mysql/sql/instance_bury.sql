-- Death as one write: only if the heartbeat is still the one that was seen, and too old.
-- instance, the heartbeat that was seen, its greatest age in microseconds, 1: it was unchanged for that
-- long by the caller's own clock, whatever this one says
delete from async_command_instance
where id = ? and timestampdiff(microsecond, timestamp'1970-01-01 00:00:00', heartbeat_at) = ?
  and (heartbeat_at < utc_timestamp(6) - interval ? microsecond or ?)
