-- The end of an instance in order: what it leaves was no crash.
-- $1 instance
with receipt as (
    update async_command_claim set closing = 1 where instance = $1
)
delete from async_command_instance where id = $1
