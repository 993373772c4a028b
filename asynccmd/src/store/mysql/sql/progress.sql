-- The latest progress of attempts, fenced.
-- a JSON array of [id, token in hexadecimal, progress]
update json_table(?, '$[*]' columns (
           id bigint path '$[0]',
           token char(32) character set ascii path '$[1]',
           progress longtext path '$[2]')) j
straight_join async_command c force index (primary) on c.id = j.id
set c.progress = j.progress, c.updated_at = utc_timestamp(6)
where c.status = 'RUNNING' and c.claim_token = unhex(j.token)
