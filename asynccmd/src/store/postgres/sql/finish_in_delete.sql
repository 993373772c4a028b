-- The same for a row that nobody wants to keep, with its failures.
-- $1 id, $2 token
with gone as (
    delete from async_command
    where id = $1 and status = 'RUNNING' and claim_token = $2 and kill_reason is null
    returning id
),
failure as (
    delete from async_command_failure where command_id = (select id from gone)
)
select id from gone
