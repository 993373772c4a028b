-- Commands, newest first, along the primary key.
-- before this id, status or null, the same, type or null, the same, how many
select id, uid, cmd_type, biz_key, payload, status, priority, max_retry, retry_count, crash_count,
       run_no, next_run_at, last_error, kill_reason, result, progress, metadata, owner, parent_id,
       claimed_by, created_at, updated_at, finished_at, payload_version,
       unique_scope, shard, compensation
from async_command force index (primary)
where id < ? and (? is null or status = ?) and (? is null or cmd_type = ?)
order by id desc
limit ?
