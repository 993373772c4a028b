-- The same as `finish_success` for rows with an output, of which locked ones are passed over.
-- $1 ids, $2 the token of each, $3 tokens, $4 how many rows of each are not acknowledged,
-- $5 the result of each row
with given as materialized (
    select * from unnest($1::bigint[], $2::uuid[], $5::text[])
                  with ordinality g (id, token, result, at)
),
pick as materialized (
    select g.*
    from given g
    cross join lateral (
        select from async_command c
        where c.id = g.id and c.status = 'RUNNING' and c.claim_token = g.token
          and c.kill_reason is null
        for no key update skip locked
    ) c
),
ended as (
    update async_command c
    set status = 'SUCCESS', crash_count = 0, claim_token = null, claimed_by = null,
        updated_at = statement_timestamp(), finished_at = statement_timestamp(), result = p.result
    from pick p
    where c.id = p.id and c.id = any (array(select id from pick))
),
receipt as (
    delete from async_command_claim
    where token = any (array(
        select o.token
        from unnest($3::uuid[], $4::bigint[]) o (token, outstanding)
        join (select token, count(*) as ended from pick group by token) p
            on p.token = o.token and p.ended = o.outstanding
    ))
)
select at - 1 from given where at not in (select at from pick)
