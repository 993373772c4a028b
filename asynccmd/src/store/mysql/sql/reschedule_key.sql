-- PENDING → PENDING with another due time. The empty key is no key.
-- microseconds since 1970 or null, microseconds from now or null, type, business key
update async_command
set next_run_at = coalesce(timestamp'1970-01-01 00:00:00' + interval ? microsecond,
                           utc_timestamp(6) + interval least(?, timestampdiff(microsecond, utc_timestamp(6), timestamp'9999-12-31 23:59:59.999999')) microsecond),
    updated_at = utc_timestamp(6)
where cmd_type = ? and biz_key = ? and biz_key <> '' and status = 'PENDING'
