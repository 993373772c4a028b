-- RUNNING → SUCCESS for rows that have nothing to tell: most ends of a busy queue. A receipt goes if
-- all its rows that were not acknowledged end here. Answers with the positions of rows that did not
-- end: fenced, or to be killed.
-- Rows are not locked before they are written, which would cost a fifth more. One that another session
-- holds is waited for, for a moment, and then refuses the whole statement: set here, the limit ends with
-- the transaction, also through a pooler. An id comes once. `coalesce` keeps the planner from
-- a join: it takes RUNNING rows for rare, and would compare every row with every other.
-- $1 ids, $2 the token of each, $3 tokens, $4 how many rows of each are not acknowledged
with patience as materialized (
    select set_config('lock_timeout', '20ms', true)
),
given as materialized (
    select * from unnest($1::bigint[], $2::uuid[]) with ordinality g (id, token, at)
),
ended as (
    update async_command
    set status = 'SUCCESS', crash_count = 0, claim_token = null, claimed_by = null,
        updated_at = statement_timestamp(), finished_at = statement_timestamp()
    where id = any ($1) and coalesce((id, claim_token) in (select id, token from given), false)
      and status = 'RUNNING' and kill_reason is null
      and exists (select from patience)
    returning id
),
receipt as (
    delete from async_command_claim
    where token = any (array(
        select o.token
        from unnest($3::uuid[], $4::bigint[]) o (token, outstanding)
        join (
            select token, count(*) as ended from given
            where coalesce(id in (select id from ended), false)
            group by token
        ) e on e.token = o.token and e.ended = o.outstanding
    ))
)
select at - 1 from given where id not in (select id from ended)
