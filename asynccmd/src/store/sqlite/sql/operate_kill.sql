-- PENDING, DEAD → KILLED; RUNNING → KILLED by force, and fenced by that.
-- ?1 id, ?2 now, ?3 reason, ?4 1 for force
update async_command
set status = 'KILLED', kill_reason = ?3, claim_token = null, claimed_by = null,
    updated_at = ?2, finished_at = ?2
where id = ?1 and (status in ('PENDING', 'DEAD') or (status = 'RUNNING' and ?4))
