-- The latest progress of attempts, fenced.
-- ?1 a JSON array of [id, token in hexadecimal, progress], ?2 now
update async_command
set progress = j.value ->> 2, updated_at = ?2
from json_each(?1) j
where async_command.id = j.value ->> 0
  and async_command.status = 'RUNNING' and async_command.claim_token = unhex(j.value ->> 1)
