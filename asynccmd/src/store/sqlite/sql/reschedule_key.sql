-- PENDING → PENDING with another due time. The empty key is no key.
-- ?1 type, ?2 business key, ?3 now, ?4 due
update async_command set next_run_at = ?4, updated_at = ?3
where cmd_type = ?1 and biz_key = ?2 and biz_key <> '' and status = 'PENDING'
