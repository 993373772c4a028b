-- RUNNING → SUCCESS in the handler's own transaction.
-- $1 id, $2 token, $3 result, $4 why there is none
update async_command
set status = 'SUCCESS', crash_count = 0, claim_token = null, claimed_by = null,
    updated_at = statement_timestamp(), finished_at = statement_timestamp(),
    result = $3, last_error = coalesce($4, last_error)
where id = $1 and status = 'RUNNING' and claim_token = $2 and kill_reason is null
