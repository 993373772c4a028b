-- PENDING → RUNNING for known rows, where a claim by due time would be allowed to take them.
-- ?1 types as a JSON array, ?2 now, ?3 instance, ?4 token, ?5 ids as a JSON array
update async_command not indexed
set status = 'RUNNING', run_no = min(run_no, 2147483646) + 1, claim_token = ?4, claimed_by = ?3, updated_at = ?2,
    progress = null
where id in (select value from json_each(?5))
  and status = 'PENDING' and crash_count = 0 and next_run_at <= ?2
  and cmd_type in (select value from json_each(?1))
  and exists (select 1 from async_command_instance where id = ?3)
returning id, uid, cmd_type, biz_key, payload, metadata, max_retry, retry_count, crash_count, run_no,
          created_at, priority, next_run_at, payload_version
