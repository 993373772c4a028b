-- The same as `finish_success` for rows that nobody wants to keep. Their failures follow them; a first
-- claim has none.
-- $1 ids, $2 the token of each, $3 tokens, $4 how many rows of each are not acknowledged
with patience as materialized (
    select set_config('lock_timeout', '20ms', true)
),
given as materialized (
    select * from unnest($1::bigint[], $2::uuid[]) with ordinality g (id, token, at)
),
ended as (
    delete from async_command
    where id = any ($1) and coalesce((id, claim_token) in (select id, token from given), false)
      and status = 'RUNNING' and kill_reason is null
      and exists (select from patience)
    returning id, run_no
),
failure as (
    delete from async_command_failure
    where command_id = any (array(select id from ended where run_no > 1))
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
