-- RUNNING → gone in the place of SUCCESS, in the handler's own transaction.
-- id, token
delete from async_command
where id = ? and status = 'RUNNING' and claim_token = ? and kill_reason is null
