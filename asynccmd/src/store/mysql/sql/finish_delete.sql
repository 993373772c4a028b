-- RUNNING → gone in the place of SUCCESS.
-- a JSON array of [id, token in hexadecimal]
delete c
from json_table(?, '$[*]' columns (
         id bigint path '$[0]',
         token char(32) character set ascii path '$[1]')) j
straight_join async_command c force index (primary) on c.id = j.id
where c.status = 'RUNNING' and c.claim_token = unhex(j.token) and c.kill_reason is null
