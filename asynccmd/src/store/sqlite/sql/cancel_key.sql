-- PENDING → KILLED. The empty key is no key.
-- ?1 type, ?2 business key, ?3 now
update async_command
set status = 'KILLED', kill_reason = 'cancelled', updated_at = ?3, finished_at = ?3
where cmd_type = ?1 and biz_key = ?2 and biz_key <> '' and status = 'PENDING'
