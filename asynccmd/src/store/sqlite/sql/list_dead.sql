-- Dead letters, newest first: few, and found by their own index however long the table is.
-- ?1 type or null, ?2 before this id, ?3 how many
select id, uid, cmd_type, biz_key, payload, status, priority, max_retry, retry_count, crash_count,
       run_no, next_run_at, last_error, kill_reason, result, progress, metadata, owner, parent_id,
       claimed_by, created_at, updated_at, finished_at, payload_version,
       unique_scope, shard, compensation
from async_command
where id in (select id from async_command where status = 'DEAD')
  and id < ?2 and (?1 is null or cmd_type = ?1)
order by id desc
limit ?3
