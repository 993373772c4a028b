-- PENDING → KILLED.
-- $1 type, $2 id
update async_command
set status = 'KILLED', kill_reason = 'cancelled',
    updated_at = statement_timestamp(), finished_at = statement_timestamp()
where id = $2 and cmd_type = $1 and status = 'PENDING'
