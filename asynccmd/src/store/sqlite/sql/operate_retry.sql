-- DEAD → PENDING, due at once, counts to 0, and nothing compensates for it any more.
-- ?1 id, ?2 now
update async_command
set status = 'PENDING', retry_count = 0, crash_count = 0, next_run_at = ?2, updated_at = ?2,
    finished_at = null, compensation = null
where id = ?1 and status = 'DEAD'
