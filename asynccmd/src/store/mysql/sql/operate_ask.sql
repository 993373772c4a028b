-- The kill of a RUNNING command, noted for its holder.
-- reason, id
update async_command set kill_reason = ?, updated_at = utc_timestamp(6) where id = ? and status = 'RUNNING'
