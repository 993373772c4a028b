-- PENDING → DEAD for rows whose holders died more often than the first time and `max_retry`: a binary
-- that did not know their type has left them so. With their failures; a death that is on record already
-- stays one.
-- $1 all known types, $2 instance
with pick as materialized (
    select id
    from async_command
    where cmd_type = any ($1::text[]) and status = 'PENDING' and crash_count > 0
      and crash_count >= 2 and crash_count > max_retry
    for update skip locked
),
dead as (
    update async_command
    set status = 'DEAD', updated_at = statement_timestamp(), finished_at = statement_timestamp(),
        last_error = 'the instance that held the command died, ' || crash_count || ' times in a row'
    where id = any (array(select id from pick))
    returning id, cmd_type, biz_key, last_error, run_no
),
failure as (
    insert into async_command_failure (command_id, run_no, kind, at, instance, error)
    select id, run_no, 'crashed', statement_timestamp(), $2, last_error from dead
    on conflict (command_id, run_no) do nothing
)
select id, cmd_type, biz_key, last_error from dead
