-- The instance's row, and the others as they stand.
-- $1 instance, $2 name
with me as (
    insert into async_command_instance (id, name, started_at, heartbeat_at)
    values ($1, $2, statement_timestamp(), statement_timestamp())
)
select id, heartbeat_at from async_command_instance where id <> $1
