-- The same as `finish_success` for rows that nobody wants to keep.
-- a JSON array of [id, token in hexadecimal], 1: also unique commands
/*M! set statement innodb_lock_wait_timeout = 0 for */
delete c
from json_table(?, '$[*]' columns (
         id bigint path '$[0]',
         token char(32) character set ascii path '$[1]')) j
straight_join async_command c force index (primary) on c.id = j.id
where c.status = 'RUNNING' and c.claim_token = unhex(j.token) and c.kill_reason is null
  and (c.unique_scope is not null) <= ?
