-- RUNNING → PENDING, due at once, nothing counted; KILLED if a kill was asked for.
-- $1 id
update async_command
set status = case when kill_reason is null then 'PENDING' else 'KILLED' end,
    claim_token = null, claimed_by = null,
    next_run_at = statement_timestamp(), updated_at = statement_timestamp(),
    finished_at = case when kill_reason is not null then statement_timestamp() end
where id = $1 and status = 'RUNNING'
