-- PENDING → PENDING with another due time.
-- microseconds since 1970 or null, microseconds from now or null, id, type
update async_command
set next_run_at = coalesce(timestamp'1970-01-01 00:00:00' + interval ? microsecond,
                           utc_timestamp(6) + interval least(?, timestampdiff(microsecond, utc_timestamp(6), timestamp'9999-12-31 23:59:59.999999')) microsecond),
    updated_at = utc_timestamp(6)
where id = ? and cmd_type = ? and status = 'PENDING'
