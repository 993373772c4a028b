-- Commands, oldest first, along the primary key: for who reads all of them.
-- ?1 status or null, ?2 type or null, ?3 business key or null, ?4 after this id, ?5 before this id,
-- ?6 how many
select id, uid, cmd_type, biz_key, payload, status, priority, max_retry, retry_count, crash_count,
       run_no, next_run_at, last_error, kill_reason, result, progress, metadata, owner, parent_id,
       claimed_by, created_at, updated_at, finished_at, payload_version,
       unique_scope, shard, compensation
from async_command not indexed
where id > ?4 and id < ?5
  and (?1 is null or status = ?1) and (?2 is null or cmd_type = ?2) and (?3 is null or biz_key = ?3)
order by id
limit ?6
