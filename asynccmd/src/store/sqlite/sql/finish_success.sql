-- RUNNING → SUCCESS for rows of one token that have nothing to tell: most ends of a busy queue. The
-- caller compares the count, and falls back to `finish_rows` if one row was fenced or is to be killed.
-- ?1 ids as a JSON array, ?2 token, ?3 now
update async_command not indexed
set status = 'SUCCESS', crash_count = 0, claim_token = null, claimed_by = null,
    updated_at = ?3, finished_at = ?3
where id in (select value from json_each(?1))
  and status = 'RUNNING' and claim_token = ?2 and kill_reason is null
