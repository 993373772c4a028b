-- The instance's row, and the others as they stand.
-- Where a row does not say its stall timeout, it is the default.
-- $1 instance, $2 name, $3 its stall timeout in microseconds
with me as (
    insert into async_command_instance (id, name, started_at, heartbeat_at, meta)
    values ($1, $2, statement_timestamp(), statement_timestamp(), jsonb_build_object('stall', $3::bigint))
)
select id, heartbeat_at, coalesce((meta ->> 'stall')::bigint, 60000000)
from async_command_instance where id <> $1
