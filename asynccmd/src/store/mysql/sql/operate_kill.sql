-- PENDING, DEAD → KILLED; RUNNING → KILLED by force, and fenced by that.
-- reason, id, 1 for force
update async_command
set kill_reason = ?, claim_token = null, claimed_by = null, updated_at = utc_timestamp(6),
    finished_at = utc_timestamp(6), status = 'KILLED'
where id = ? and (status in ('PENDING', 'DEAD') or (status = 'RUNNING' and ?))
