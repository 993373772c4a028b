-- The same as `finish_success` for rows with an output.
-- a JSON array of [id, token in hexadecimal, result], 1: also unique commands
/*M! set statement innodb_lock_wait_timeout = 0 for */
update json_table(?, '$[*]' columns (
           id bigint path '$[0]',
           token char(32) character set ascii path '$[1]',
           result longtext path '$[2]')) j
straight_join async_command c force index (primary) on c.id = j.id
set c.crash_count = 0, c.claim_token = null, c.claimed_by = null, c.result = j.result,
    c.updated_at = utc_timestamp(6), c.finished_at = utc_timestamp(6), c.status = 'SUCCESS'
where c.status = 'RUNNING' and c.claim_token = unhex(j.token) and c.kill_reason is null
  and (c.unique_scope is not null) <= ?
