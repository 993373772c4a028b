-- The rows of these receipts, locked, but those that another session has locked.
-- receipts in hexadecimal as a JSON array, 1: also unique commands, an id or null for all, the same
select c.id, r.token, c.run_no, c.cmd_type, c.biz_key, c.unique_key, c.unique_scope, c.kill_reason,
       c.max_retry, c.crash_count, c.claimed_by, r.closing
from json_table(?, '$[*]' columns (token char(32) character set ascii path '$')) t
straight_join async_command_claim r force index (primary) on r.token = unhex(t.token)
straight_join json_table(r.ids, '$[*]' columns (id bigint path '$')) j
straight_join async_command c force index (primary) on c.id = j.id
where c.status = 'RUNNING' and c.claim_token = r.token and (c.unique_scope is not null) <= ?
  and (? is null or c.id = ?)
for update /*!80001 of c */ skip locked
