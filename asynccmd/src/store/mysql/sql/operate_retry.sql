-- DEAD → PENDING, due at once, counts to 0, and nothing compensates for it any more.
-- id
update async_command
set retry_count = 0, crash_count = 0, next_run_at = utc_timestamp(6), updated_at = utc_timestamp(6),
    finished_at = null, compensation = null, status = 'PENDING'
where id = ? and status = 'DEAD'
