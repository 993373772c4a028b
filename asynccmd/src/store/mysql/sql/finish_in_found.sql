-- Why a row could not be ended: the kill that was asked for, if it is held under this token still.
-- A locking read: the caller's snapshot may be older than the claim.
-- id, token
select kill_reason from async_command
where id = ? and status = 'RUNNING' and claim_token = ?
lock in share mode
