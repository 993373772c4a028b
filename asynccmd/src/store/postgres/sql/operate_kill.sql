-- PENDING, DEAD → KILLED; RUNNING → KILLED by force, and fenced by that.
-- $1 id, $2 reason, $3 whether by force
update async_command
set status = 'KILLED', kill_reason = $2, claim_token = null, claimed_by = null,
    updated_at = statement_timestamp(), finished_at = statement_timestamp()
where id = $1 and (status in ('PENDING', 'DEAD') or (status = 'RUNNING' and $3))
