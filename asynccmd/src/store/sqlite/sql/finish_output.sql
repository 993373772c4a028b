-- The same as `finish_success` for rows with an output.
-- ?1 a JSON array of [id, result], ?2 token, ?3 now
update async_command
set status = 'SUCCESS', crash_count = 0, claim_token = null, claimed_by = null,
    updated_at = ?3, finished_at = ?3, result = j.value ->> 1
from json_each(?1) j
where async_command.id = j.value ->> 0
  and async_command.status = 'RUNNING' and async_command.claim_token = ?2
  and async_command.kill_reason is null
