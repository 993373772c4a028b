-- The lease exists while the row exists: its age is not looked at here. The first row of the answer is
-- the instance's own, and only there if its lease is; the others follow.
-- Where a row does not say its stall timeout, it is the default.
-- $1 instance
with beat as (
    update async_command_instance set heartbeat_at = statement_timestamp() where id = $1
    returning id, heartbeat_at
)
select true, id, heartbeat_at, 0::bigint from beat
union all
select false, id, heartbeat_at, coalesce((meta ->> 'stall')::bigint, 60000000)
from async_command_instance where id <> $1
