-- One step along the primary key: finished rows past their retention go, with their failures. No
-- finished row is in any index (but DEAD ones, which stay): that is what makes them cost nothing.
-- A row that is locked is left for the next round.
-- $1 after, $2 how many, $3 default retention in microseconds, $4 types, $5 the retention of each
with page as materialized (
    select id, status, cmd_type, finished_at from async_command
    where id > $1 order by id limit $2
),
expired as materialized (
    select p.id
    from page p
    left join unnest($4::text[], $5::bigint[]) r (cmd_type, keep) on r.cmd_type = p.cmd_type
    where p.status in ('SUCCESS', 'KILLED')
      and p.finished_at + coalesce(r.keep, $3) * interval '1 microsecond' < statement_timestamp()
),
pick as materialized (
    select c.id
    from expired e
    cross join lateral (
        select c.id from async_command c
        where c.id = e.id and c.status in ('SUCCESS', 'KILLED')
        for update skip locked
    ) c
),
gone as (
    delete from async_command where id = any (array(select id from pick))
),
failure as (
    delete from async_command_failure where command_id = any (array(select id from pick))
)
select (select max(id) from page), (select count(*) from page), (select count(*) from pick)
