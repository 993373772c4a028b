-- The first due rows of one type and level: one index range, read no further than the limit. It becomes
-- a branch of a claim's text (text.rs): neither database can do this for a list of types by a join.
-- type, 1 for rows that saw a holder die, level, how many
select c.id, c.uid, c.cmd_type, c.biz_key, c.payload, c.metadata, c.max_retry, c.retry_count, c.crash_count,
       c.run_no, c.created_at, c.payload_version, c.priority, c.next_run_at,
       case when c.unique_scope = 2 then c.unique_key end
from async_command c force index (async_command_due)
where c.due_type = ? and c.suspect = ? and c.priority = ? and c.next_run_at <= utc_timestamp(6)
order by c.next_run_at, c.id
limit ?
