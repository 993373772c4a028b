-- DEAD → PENDING, due at once, counts to 0, and nothing compensates for it any more.
-- $1 id
update async_command
set status = 'PENDING', retry_count = 0, crash_count = 0, finished_at = null, compensation = null,
    next_run_at = statement_timestamp(), updated_at = statement_timestamp()
where id = $1 and status = 'DEAD'
