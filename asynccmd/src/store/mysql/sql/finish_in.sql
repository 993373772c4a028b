-- RUNNING → SUCCESS in the handler's own transaction.
-- result, why there is none, id, token
update async_command
set crash_count = 0, claim_token = null, claimed_by = null, updated_at = utc_timestamp(6),
    finished_at = utc_timestamp(6), result = ?, last_error = coalesce(?, last_error), status = 'SUCCESS'
where id = ? and status = 'RUNNING' and claim_token = ? and kill_reason is null
