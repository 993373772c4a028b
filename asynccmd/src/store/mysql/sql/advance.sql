-- Time passes for every PENDING row. Due times do not go before 1970.
-- microseconds
update async_command
set next_run_at = greatest(next_run_at - interval least(?, timestampdiff(microsecond, timestamp'1970-01-01 00:00:00', next_run_at)) microsecond, timestamp'1970-01-01 00:00:00'),
    updated_at = utc_timestamp(6)
where status = 'PENDING'
