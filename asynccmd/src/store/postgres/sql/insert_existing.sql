-- The commands that stand in the way of unique ones. A PENDING one is kept from being claimed until
-- this transaction ends: when it runs, it sees what this one wrote.
-- $1 types, $2 the key of each
select g.at - 1, coalesce(p.id, r.id), coalesce(p.uid, r.uid), coalesce(p.status, r.status)
from unnest($1::text[], $2::text[]) with ordinality g (cmd_type, unique_key, at)
left join lateral (
    select c.id, c.uid, c.status
    from async_command c
    where c.cmd_type = g.cmd_type and c.unique_key = g.unique_key and c.unique_key is not null
      and c.status = 'PENDING'
    for key share
) p on true
left join lateral (
    select c.id, c.uid, c.status
    from async_command c
    where p.id is null
      and c.cmd_type = g.cmd_type and c.unique_key = g.unique_key and c.unique_key is not null
      and c.status = 'RUNNING' and c.unique_scope = 1
    limit 1
) r on true
where p.id is not null or r.id is not null
