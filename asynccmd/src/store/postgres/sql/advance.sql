-- Time passes for every PENDING row.
-- $1 microseconds
update async_command
set next_run_at = case when next_run_at > timestamptz 'epoch' + $1::bigint * interval '1 microsecond'
                       then next_run_at - $1::bigint * interval '1 microsecond' else timestamptz 'epoch' end,
    updated_at = statement_timestamp()
where status = 'PENDING'
