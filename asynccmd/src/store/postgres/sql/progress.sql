-- The latest progress of attempts, fenced. A row that is locked has its end under way, or its next
-- report comes.
-- $1 ids, $2 the token of each, $3 the report of each
with pick as materialized (
    select g.id, g.report
    from unnest($1::bigint[], $2::uuid[], $3::text[]) g (id, token, report)
    cross join lateral (
        select from async_command c
        where c.id = g.id and c.status = 'RUNNING' and c.claim_token = g.token
        for no key update skip locked
    ) c
)
update async_command c
set progress = p.report, updated_at = statement_timestamp()
from pick p
where c.id = p.id and c.id = any (array(select id from pick))
