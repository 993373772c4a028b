-- The same as `finish_delete` for those of the rows that nobody has locked.
-- $1 ids, $2 the token of each, $3 tokens, $4 how many rows of each are not acknowledged
with given as materialized (
    select * from unnest($1::bigint[], $2::uuid[]) with ordinality g (id, token, at)
),
pick as materialized (
    select g.*, c.run_no
    from given g
    cross join lateral (
        select c.run_no
        from async_command c
        where c.id = g.id and c.status = 'RUNNING' and c.claim_token = g.token
          and c.kill_reason is null
        for update skip locked
    ) c
),
ended as (
    delete from async_command where id = any (array(select id from pick))
),
failure as (
    delete from async_command_failure
    where command_id = any (array(select id from pick where run_no > 1))
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
