-- The same with a type, along the index on both: a query of its own, because the planner chooses one
-- way for all values of a parameter.
-- type, business key, before this id, status or null, the same, how many
select id, uid, cmd_type, biz_key, payload, status, priority, max_retry, retry_count, crash_count,
       run_no, next_run_at, last_error, kill_reason, result, progress, metadata, owner, parent_id,
       claimed_by, created_at, updated_at, finished_at, payload_version,
       unique_scope, shard, compensation
from async_command force index (async_command_trace)
where cmd_type = ? and biz_key = ? and id < ? and (? is null or status = ?)
order by id desc
limit ?
