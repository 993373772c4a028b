-- PENDING → KILLED. The empty key is no key.
-- type, business key
update async_command
set kill_reason = 'cancelled', updated_at = utc_timestamp(6), finished_at = utc_timestamp(6), status = 'KILLED'
where cmd_type = ? and biz_key = ? and biz_key <> '' and status = 'PENDING'
