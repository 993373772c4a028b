-- RUNNING → where each ending says, fenced, with the failures and receipts. A kill that was asked for
-- wins over it, and so does a newer command with the same key of scope 2 (until started), which PENDING
-- would collide with.
-- Back to PENDING such a key enters the unique index again, and waits there for whoever is inserting it
-- and has not committed: no row of a batch waits so, it is left for a call of its own.
-- Answers for each row with the state it went to, and where it went nowhere: 0 it is not RUNNING under
-- this token, 1 it is, 2 it is and was left for that call.
-- $1 ids, $2 the token of each, $3 tokens, $4 how many rows of each are not acknowledged,
-- $5 status, $6 failures to count, $7 microseconds until due or null, $8 result, $9 error, $10 reason,
-- $11 whether the deaths of holders stay as counted, $12 whether the row goes unless it is to be killed,
-- $13 the failure's kind, $14 the failure in full, $15 instance; $16 whether to take rows that may wait
with given as materialized (
    select *
    from unnest($1::bigint[], $2::uuid[], $5::text[], $6::integer[], $7::bigint[], $8::text[],
                $9::text[], $10::text[], $11::boolean[], $12::boolean[], $13::text[], $14::text[],
                $15::bigint[])
         with ordinality g (id, token, word, counted, wait, result, error, reason, deaths_stay, gone,
                            kind, message, instance, at)
),
pick as materialized (
    select g.*, c.asked, c.run_no, c.cmd_type, c.unique_key, c.contested
    from given g
    cross join lateral (
        select c.kill_reason as asked, c.run_no, c.cmd_type, c.unique_key,
               g.word = 'PENDING' and c.unique_scope = 2 and c.kill_reason is null as contested
        from async_command c
        where c.id = g.id and c.status = 'RUNNING' and c.claim_token = g.token
          and (not g.gone or c.kill_reason is not null)
          and ($16 or g.word <> 'PENDING' or c.unique_scope is distinct from 2
                   or c.kill_reason is not null)
        for no key update skip locked
    ) c
),
judged as materialized (
    select p.*, case when p.contested then (
               select o.id from async_command o
               where o.cmd_type = p.cmd_type and o.unique_key = p.unique_key
                 and o.unique_key is not null
                 and (o.status = 'PENDING' or (o.status = 'RUNNING' and o.unique_scope = 1))
                 and o.id <> p.id
           ) end as successor
    from pick p
),
ending as materialized (
    select j.*, case when j.asked is null and j.successor is null then j.word else 'KILLED' end
               as becomes
    from judged j
),
ended as (
    update async_command c
    set status = e.becomes,
        retry_count = least(c.retry_count::bigint + e.counted, 2147483647),
        crash_count = case when e.deaths_stay then c.crash_count else 0 end,
        next_run_at = case when e.wait is null then c.next_run_at
                           else least(statement_timestamp() + e.wait * interval '1 microsecond',
                                      '9999-12-31 23:59:59.999999Z') end,
        result = case when e.asked is null then e.result end,
        last_error = coalesce(e.error, c.last_error),
        kill_reason = coalesce(e.asked, 'superseded by #' || e.successor, e.reason),
        claim_token = null, claimed_by = null, updated_at = statement_timestamp(),
        finished_at = case when e.becomes <> 'PENDING' then statement_timestamp() end
    from ending e
    where c.id = e.id and c.id = any (array(select id from ending))
),
failure as (
    insert into async_command_failure (command_id, run_no, kind, at, instance, error)
    select id, run_no, kind, statement_timestamp(), instance, message
    from ending where kind is not null
    on conflict (command_id, run_no) do nothing
),
receipt as (
    delete from async_command_claim
    where token = any (array(
        select o.token
        from unnest($3::uuid[], $4::bigint[]) o (token, outstanding)
        join (select token, count(*) as ended from ending group by token) e
            on e.token = o.token and e.ended = o.outstanding
    ))
)
select g.at - 1, e.becomes, case when e.at is null then coalesce((
           select case when g.word = 'PENDING' and c.unique_scope = 2 and c.kill_reason is null
                            and not g.gone then 2 else 1 end
           from async_command c
           where c.id = g.id and c.status = 'RUNNING' and c.claim_token = g.token
       ), 0) end
from given g left join ending e on e.at = g.at
