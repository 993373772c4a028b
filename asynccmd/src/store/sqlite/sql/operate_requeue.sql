-- RUNNING → PENDING, due at once, nothing counted; KILLED if a kill was asked for.
-- ?1 id, ?2 now
update async_command
set status = case when kill_reason is null then 'PENDING' else 'KILLED' end,
    claim_token = null, claimed_by = null, next_run_at = ?2, updated_at = ?2,
    finished_at = case when kill_reason is null then null else ?2 end
where id = ?1 and status = 'RUNNING'
