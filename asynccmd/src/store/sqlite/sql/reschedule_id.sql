-- PENDING → PENDING with another due time.
-- ?1 type, ?2 id, ?3 now, ?4 due
update async_command set next_run_at = ?4, updated_at = ?3
where id = ?2 and cmd_type = ?1 and status = 'PENDING'
