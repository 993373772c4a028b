-- The rows of these attempts, locked: those that another session has locked are passed over, so that
-- each delays itself alone. There is no `update … returning` here: what an end must know of its row
-- is read first. (`of c`, which MariaDB does not know: the list of parameters is no table to lock.)
-- a JSON array of [id, token in hexadecimal], 1: also unique commands
select c.id, c.claim_token, c.kill_reason, c.unique_scope, c.cmd_type, c.unique_key
from json_table(?, '$[*]' columns (
         id bigint path '$[0]',
         token char(32) character set ascii path '$[1]')) j
straight_join async_command c force index (primary) on c.id = j.id
where c.status = 'RUNNING' and c.claim_token = unhex(j.token) and (c.unique_scope is not null) <= ?
for update /*!80001 of c */ skip locked
