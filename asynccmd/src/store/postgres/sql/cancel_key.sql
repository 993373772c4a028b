-- PENDING → KILLED. The empty key is no key.
-- $1 type, $2 business key
update async_command
set status = 'KILLED', kill_reason = 'cancelled',
    updated_at = statement_timestamp(), finished_at = statement_timestamp()
where cmd_type = $1 and biz_key = $2 and biz_key <> '' and status = 'PENDING'
