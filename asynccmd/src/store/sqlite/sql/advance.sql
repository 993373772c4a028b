-- Time passes for every PENDING row.
-- ?1 microseconds, ?2 now
update async_command set next_run_at = max(0, next_run_at - ?1), updated_at = ?2
where status = 'PENDING'
