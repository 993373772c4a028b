-- Of (id, token) pairs those that are RUNNING under their token, with the kill that was asked for.
-- $1 ids, $2 the token of each
select g.at - 1, c.kill_reason
from unnest($1::bigint[], $2::uuid[]) with ordinality g (id, token, at)
cross join lateral (
    select c.kill_reason
    from async_command c
    where c.id = g.id and c.status = 'RUNNING' and c.claim_token = g.token
    limit 1
) c
