-- Time passes for every PENDING row.
-- $1 microseconds
update async_command
set next_run_at = greatest('epoch', next_run_at - $1::bigint * interval '1 microsecond'),
    updated_at = statement_timestamp()
where status = 'PENDING'
