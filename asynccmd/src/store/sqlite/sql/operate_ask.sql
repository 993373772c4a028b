-- The kill of a RUNNING command, noted for its holder.
-- ?1 id, ?2 now, ?3 reason
update async_command set kill_reason = ?3, updated_at = ?2 where id = ?1 and status = 'RUNNING'
