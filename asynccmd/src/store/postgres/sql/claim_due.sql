-- PENDING → RUNNING for the first rows of each want, in one statement: rows, receipt, and when the next
-- row is due.
-- One index range a type and level, each read no further than its room; a want's types share the room.
-- The limits pull rows one by one, and only what is pulled is locked: the levels behind the last one
-- needed are not even looked at. A want of which nothing is PENDING costs one index seek.
-- A want that goes on begins after its marks, the places of the rows that were taken last: what comes
-- before them may be nothing but entries of rows that are gone, kept for somebody's old snapshot.
-- Rows are updated by an array of their ids: with a join the planner may walk the primary key from its
-- start. A count at the column's end stays there: an error would stop the whole claim.
-- $1 instance, $2 token, $3 types, $4 and $5 the first and last of each want among them (from 1),
-- $6 room of each, $7 whether it goes on, $8 and $9 its marks, five of each want, or none at all
with lease as materialized (
    select id, coalesce((meta ->> 'closing')::smallint, 0) as closing
    from async_command_instance where id = $1
),
want as materialized (
    select w.head, w.tail, w.room, w.goes_on, w.position::integer
    from unnest($4::integer[], $5::integer[], $6::bigint[], $7::boolean[])
         with ordinality as w (head, tail, room, goes_on, position)
    where exists (select from lease)
      and (w.goes_on or exists (
          select from generate_series(w.head, w.tail) t
          cross join lateral (
              select from async_command c
              where c.cmd_type = ($3::text[])[t] and c.status = 'PENDING' and c.crash_count = 0
              limit 1
          ) c
      ))
),
pick as materialized (
    select w.position, c.id
    from want w
    cross join lateral (
        select c.id
        from generate_series(-2, 2) level
        cross join lateral (
            select c.id
            from generate_series(w.head, w.tail) t
            cross join lateral (
                select c.id, c.next_run_at
                from async_command c
                where c.cmd_type = ($3::text[])[t] and c.priority = level
                  and c.status = 'PENDING' and c.crash_count = 0
                  and c.next_run_at <= statement_timestamp()
                  and (c.next_run_at, c.id) > (
                      coalesce(($8::timestamptz[])[w.position * 5 - 2 + level], '-infinity'),
                      coalesce(($9::bigint[])[w.position * 5 - 2 + level], '-9223372036854775808')
                  )
                order by c.next_run_at, c.id
                limit w.room
                for update skip locked
            ) c
            order by c.next_run_at, c.id
            limit w.room
        ) c
        limit w.room
    ) c
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
),
upcoming as (
    select min(c.next_run_at) as at
    from want w
    left join (select position, count(*) as taken from pick group by position) p
        on p.position = w.position
    cross join generate_series(-2, 2) level
    cross join generate_series(w.head, w.tail) t
    cross join lateral (
        select c.next_run_at
        from async_command c
        where c.cmd_type = ($3::text[])[t] and c.priority = level
          and c.status = 'PENDING' and c.crash_count = 0
          and c.next_run_at > statement_timestamp()
        order by c.next_run_at
        limit 1
    ) c
    where coalesce(p.taken, 0) < w.room
)
select marked.*, exists (select from lease), upcoming.at, statement_timestamp()
from upcoming left join marked on true
