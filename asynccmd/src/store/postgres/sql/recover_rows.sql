-- RUNNING → PENDING, DEAD or KILLED for the rows of these receipts, and the deaths of the holders before
-- the rows forget who held them. A holder that was closing did not crash.
-- The first death only marks a row, whatever its `max_retry`: it may never have started. A type that
-- this binary does not know goes to PENDING always. Rows that are locked are passed over, and a row
-- whose key of scope 2 (until started) enters the unique index again is left for a call of its own,
-- which may wait: it is in the answer without a state.
-- $1 tokens, $2 ids or null for all, $3 known types, $4 whether to take rows that may wait
with held as materialized (
    select r.token, r.closing = 1 as closing, c.*
    from async_command_claim r
    cross join lateral unnest(r.ids) j (id)
    cross join lateral (
        select c.id, c.cmd_type, c.biz_key, c.unique_key, c.unique_scope, c.kill_reason as asked,
               c.max_retry, c.run_no, c.claimed_by, c.crash_count
        from async_command c
        where c.id = j.id and c.status = 'RUNNING' and c.claim_token = r.token
          and ($4 or c.unique_scope is distinct from 2 or c.kill_reason is not null)
        for no key update skip locked
    ) c
    where r.token = any ($1::uuid[]) and ($2::bigint[] is null or j.id = any ($2::bigint[]))
),
counted as materialized (
    select h.*, least(h.crash_count::bigint + case when h.closing then 0 else 1 end, 2147483647)
               as crashes
    from held h
),
judged as materialized (
    select h.*,
           not h.closing and h.crashes >= 2 and h.crashes > h.max_retry
               and h.cmd_type = any ($3::text[]) as doomed,
           case when h.unique_scope = 2 then (
               select o.id from async_command o
               where o.cmd_type = h.cmd_type and o.unique_key = h.unique_key
                 and o.unique_key is not null
                 and (o.status = 'PENDING' or (o.status = 'RUNNING' and o.unique_scope = 1))
                 and o.id <> h.id
           ) end as successor
    from counted h
),
told as materialized (
    select j.*,
           case when j.asked is not null then 'KILLED'
                when j.doomed then 'DEAD'
                when j.successor is not null then 'KILLED'
                else 'PENDING' end as becomes,
           'the instance that held the command died'
               || case when j.crashes > 1 then ', ' || j.crashes || ' times in a row' else '' end
               as message
    from judged j
),
recovered as (
    update async_command c
    set status = e.becomes,
        kill_reason = case when e.asked is not null then e.asked
                           when e.becomes = 'KILLED' then 'superseded by #' || e.successor end,
        crash_count = e.crashes,
        last_error = case when e.closing then c.last_error else e.message end,
        next_run_at = statement_timestamp(),
        claim_token = null, claimed_by = null, updated_at = statement_timestamp(),
        finished_at = case when e.becomes <> 'PENDING' then statement_timestamp() end
    from told e
    where c.id = e.id and c.id = any (array(select id from told))
    returning c.id, c.cmd_type, c.biz_key, c.last_error, c.status
),
failure as (
    insert into async_command_failure (command_id, run_no, kind, at, instance, error)
    select id, run_no, 'crashed', statement_timestamp(), claimed_by, message
    from told where not closing
    on conflict (command_id, run_no) do nothing
)
select id, cmd_type, biz_key, last_error, status from recovered
union all
select c.id, c.cmd_type, c.biz_key, null, null
from async_command_claim r
cross join lateral unnest(r.ids) j (id)
cross join lateral (
    select c.id, c.cmd_type, c.biz_key
    from async_command c
    where c.id = j.id and c.status = 'RUNNING' and c.claim_token = r.token
      and c.unique_scope = 2 and c.kill_reason is null
    limit 1
) c
where not $4 and r.token = any ($1::uuid[])
  and ($2::bigint[] is null or j.id = any ($2::bigint[]))
