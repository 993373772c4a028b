-- Why a row could not be ended: the kill that was asked for, if it is held under this token still.
-- $1 id, $2 token
select kill_reason from async_command
where id = $1 and status = 'RUNNING' and claim_token = $2
