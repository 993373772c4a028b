-- Of (id, token) pairs those that are RUNNING under their token, with the kill that was asked for.
-- pairs as a JSON array of [id, token in hexadecimal]
select cast(j.position as signed), c.kill_reason
from json_table(?, '$[*]' columns (
         position for ordinality,
         id bigint path '$[0]',
         token char(32) character set ascii path '$[1]')) j
straight_join async_command c force index (primary) on c.id = j.id
where c.status = 'RUNNING' and c.claim_token = unhex(j.token)
