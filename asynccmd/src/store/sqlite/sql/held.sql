-- Of (id, token) pairs those that are RUNNING under their token, with the kill that was asked for.
-- ?1 pairs as a JSON array of [id, token in hexadecimal]
select j.key, c.kill_reason
from json_each(?1) j cross join async_command c
where c.id = j.value ->> 0 and c.status = 'RUNNING' and c.claim_token = unhex(j.value ->> 1)
