-- PENDING → RUNNING for the first due row that saw its holder die: one, whatever its level, so that
-- the guilty one of a batch is found by itself; with the receipt. Types go in the order of their first
-- rows, and the limit stops at the first row that can be locked.
-- $1 instance, $2 token, $3 types
with lease as materialized (
    select id, coalesce((meta ->> 'closing')::smallint, 0) as closing
    from async_command_instance where id = $1
),
pick as materialized (
    select c.id
    from (
        select t.cmd_type
        from unnest($3::text[]) t (cmd_type)
        cross join lateral (
            select c.next_run_at, c.id
            from async_command c
            where c.cmd_type = t.cmd_type and c.status = 'PENDING' and c.crash_count > 0
              and c.next_run_at <= statement_timestamp()
            order by c.next_run_at, c.id
            limit 1
        ) first
        where exists (select from lease)
        order by first.next_run_at, first.id
    ) t
    cross join lateral (
        select c.id
        from async_command c
        where c.cmd_type = t.cmd_type and c.status = 'PENDING' and c.crash_count > 0
          and c.next_run_at <= statement_timestamp()
        order by c.next_run_at, c.id
        limit 1
        for update skip locked
    ) c
    limit 1
),
marked as (
    update async_command
    set status = 'RUNNING', run_no = least(run_no, 2147483646) + 1, claim_token = $2, claimed_by = $1,
        updated_at = statement_timestamp(), progress = null
    where id = any (array(select id from pick))
    returning id, uid, cmd_type, biz_key, payload, metadata, max_retry, retry_count, crash_count,
              run_no, created_at, priority, next_run_at, payload_version
),
receipt as (
    insert into async_command_claim (token, instance, ids, at, closing)
    select $2, id, array(select id from pick), statement_timestamp(), closing
    from lease where exists (select from pick)
)
select marked.*, exists (select from lease), null::timestamptz, statement_timestamp()
from (select) one left join marked on true
