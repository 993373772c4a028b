-- PENDING → KILLED.
-- id, type
update async_command
set kill_reason = 'cancelled', updated_at = utc_timestamp(6), finished_at = utc_timestamp(6), status = 'KILLED'
where id = ? and cmd_type = ? and status = 'PENDING'
