-- RUNNING → SUCCESS for rows that have nothing to tell: most ends of a busy queue.
-- MariaDB refuses the statement where another session has locked one of them; MySQL cannot, and is given
-- rows that are locked already. (The list of parameters has no column for results: one of a `text` type,
-- also of nulls, makes its temporary table one on disk, and that takes half as long again.)
-- a JSON array of [id, token in hexadecimal], 1: also unique commands
/*M! set statement innodb_lock_wait_timeout = 0 for */
update json_table(?, '$[*]' columns (
           id bigint path '$[0]',
           token char(32) character set ascii path '$[1]')) j
straight_join async_command c force index (primary) on c.id = j.id
set c.crash_count = 0, c.claim_token = null, c.claimed_by = null,
    c.updated_at = utc_timestamp(6), c.finished_at = utc_timestamp(6), c.status = 'SUCCESS'
where c.status = 'RUNNING' and c.claim_token = unhex(j.token) and c.kill_reason is null
  and (c.unique_scope is not null) <= ?
