-- Of these rows those that the claim has marked. By primary key: nothing indexes the token.
-- ids as a JSON array, token
select c.id, c.uid, c.cmd_type, c.biz_key, c.payload, c.metadata, c.max_retry, c.retry_count, c.crash_count,
       c.run_no, c.created_at, c.payload_version, c.priority, c.next_run_at
from json_table(?, '$[*]' columns (id bigint path '$')) j
straight_join async_command c force index (primary) on c.id = j.id
where c.status = 'RUNNING' and c.claim_token = ?
