-- Of known rows those that a claim by due time would be allowed to take.
-- ids as a JSON array, types as a JSON array
select c.id, c.uid, c.cmd_type, c.biz_key, c.payload, c.metadata, c.max_retry, c.retry_count, c.crash_count,
       c.run_no, c.created_at, c.payload_version, c.priority, c.next_run_at,
       case when c.unique_scope = 2 then c.unique_key end
from json_table(?, '$[*]' columns (id bigint path '$')) j
straight_join async_command c force index (primary) on c.id = j.id
where c.status = 'PENDING' and c.crash_count = 0 and c.next_run_at <= utc_timestamp(6)
  and c.cmd_type in (
      select t.cmd_type from json_table(?, '$[*]' columns (
          cmd_type varchar(64) character set ascii collate ascii_bin path '$')) t)
