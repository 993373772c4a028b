-- Dead letters, newest first: few, and found by their own index however long the table is.
-- before this id, type or null, the same, how many
select id, uid, cmd_type, biz_key, payload, status, priority, max_retry, retry_count, crash_count,
       run_no, next_run_at, last_error, kill_reason, result, progress, metadata, owner, parent_id,
       claimed_by, created_at, updated_at, finished_at, payload_version,
       unique_scope, shard, compensation
from async_command force index (async_command_dead)
where dead_at is not null and id < ? and (? is null or cmd_type = ?)
order by id desc
limit ?
