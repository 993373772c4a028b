-- The kill of a RUNNING command, noted for its holder.
-- $1 id, $2 reason
update async_command set kill_reason = $2, updated_at = statement_timestamp()
where id = $1 and status = 'RUNNING'
