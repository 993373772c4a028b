-- PENDING → KILLED.
-- ?1 type, ?2 id, ?3 now
update async_command
set status = 'KILLED', kill_reason = 'cancelled', updated_at = ?3, finished_at = ?3
where id = ?2 and cmd_type = ?1 and status = 'PENDING'
