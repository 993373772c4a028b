-- Death as one write: only if the heartbeat is still the one that was seen, and too old.
-- $1 instance, $2 the heartbeat that was seen, $3 microseconds after which it is too old,
-- $4 it was unchanged for that long by the caller's own clock, whatever this one says
delete from async_command_instance
where id = $1 and heartbeat_at = $2
  and ($4 or heartbeat_at < statement_timestamp() - $3::bigint * interval '1 microsecond')
