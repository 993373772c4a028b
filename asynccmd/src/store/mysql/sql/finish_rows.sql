-- RUNNING → where each ending or recovery says, fenced. Kills and successors have been looked up under
-- the rows' locks (`finish_lock`, `recover_rows`): the values are final.
-- An assignment reads its own column alone, so that it is the same in every `sql_mode`.
-- a JSON array of
--    [id, token in hexadecimal, status, failures to count, deaths or null, microseconds from now until
--     due or null, error, reason]
update json_table(?, '$[*]' columns (
           id bigint path '$[0]',
           token char(32) character set ascii path '$[1]',
           status varchar(16) character set ascii path '$[2]',
           counted int path '$[3]',
           deaths int path '$[4]',
           wait bigint path '$[5]',
           error varchar(500) path '$[6]',
           reason varchar(200) path '$[7]')) j
straight_join async_command c force index (primary) on c.id = j.id
set c.retry_count = least(c.retry_count + j.counted, 2147483647),
    c.crash_count = coalesce(j.deaths, c.crash_count),
    c.next_run_at = coalesce(utc_timestamp(6) + interval least(j.wait, timestampdiff(microsecond, utc_timestamp(6), timestamp'9999-12-31 23:59:59.999999')) microsecond, c.next_run_at),
    c.result = null,
    c.last_error = coalesce(j.error, c.last_error),
    c.kill_reason = j.reason,
    c.claim_token = null, c.claimed_by = null, c.updated_at = utc_timestamp(6),
    c.finished_at = case when j.status = 'PENDING' then null else utc_timestamp(6) end,
    c.status = j.status
where c.status = 'RUNNING' and c.claim_token = unhex(j.token)
