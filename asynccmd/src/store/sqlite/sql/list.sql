-- Commands, newest first, along the primary key.
-- ?1 status or null, ?2 type or null, ?3 before this id, ?4 how many
select id, uid, cmd_type, biz_key, payload, status, priority, max_retry, retry_count, crash_count,
       run_no, next_run_at, last_error, kill_reason, result, progress, metadata, owner, parent_id,
       claimed_by, created_at, updated_at, finished_at, payload_version,
       unique_scope, shard, compensation
from async_command not indexed
where id < ?3 and (?1 is null or status = ?1) and (?2 is null or cmd_type = ?2)
order by id desc
limit ?4
