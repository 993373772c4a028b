-- PENDING → RUNNING for known rows, where a claim by due time would be allowed to take them; with the
-- receipt. Rows that somebody has locked are passed over: a duplicate's submitter holds a share lock
-- until its own commit.
-- $1 instance, $2 token, $3 types, $4 ids
with lease as materialized (
    select id, coalesce((meta ->> 'closing')::smallint, 0) as closing
    from async_command_instance where id = $1
),
pick as materialized (
    select c.id
    from unnest($4::bigint[]) g (id)
    cross join lateral (
        select c.id
        from async_command c
        where c.id = g.id and c.status = 'PENDING' and c.crash_count = 0
          and c.next_run_at <= statement_timestamp() and c.cmd_type = any ($3::text[])
        for update skip locked
    ) c
    where exists (select from lease)
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
