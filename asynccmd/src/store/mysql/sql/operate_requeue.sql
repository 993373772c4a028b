-- RUNNING → PENDING, due at once, nothing counted; KILLED if a kill was asked for.
-- id
update async_command
set claim_token = null, claimed_by = null, next_run_at = utc_timestamp(6), updated_at = utc_timestamp(6),
    finished_at = case when kill_reason is null then null else utc_timestamp(6) end,
    status = case when kill_reason is null then 'PENDING' else 'KILLED' end
where id = ? and status = 'RUNNING'
