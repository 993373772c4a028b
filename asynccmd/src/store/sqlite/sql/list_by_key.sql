-- Commands of a business key, newest first: with a type along the index on both.
-- ?1 status or null, ?2 type or null, ?3 before this id, ?4 how many, ?5 business key
select id, uid, cmd_type, biz_key, payload, status, priority, max_retry, retry_count, crash_count,
       run_no, next_run_at, last_error, kill_reason, result, progress, metadata, owner, parent_id,
       claimed_by, created_at, updated_at, finished_at, payload_version,
       unique_scope, shard, compensation
from async_command
where id in (
    select id from async_command
    where cmd_type = ?2 and biz_key = ?5 and biz_key <> '' and id < ?3
    union all
    select id from async_command not indexed
    where ?2 is null and biz_key = ?5 and id < ?3
    union all
    select id from async_command not indexed
    where ?2 is not null and ?5 = '' and cmd_type = ?2 and biz_key = '' and id < ?3
)
and (?1 is null or status = ?1)
order by id desc
limit ?4
