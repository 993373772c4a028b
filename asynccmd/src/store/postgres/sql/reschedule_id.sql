-- PENDING → PENDING with another due time: $3, or else $4 microseconds from now.
-- $1 type, $2 id
update async_command
set next_run_at = least(coalesce($3, statement_timestamp() + $4::bigint * interval '1 microsecond'),
                        '9999-12-31 23:59:59.999999Z'),
    updated_at = statement_timestamp()
where id = $2 and cmd_type = $1 and status = 'PENDING'
