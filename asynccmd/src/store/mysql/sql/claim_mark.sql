-- PENDING → RUNNING for rows that were picked. Under their locks all of them still are what they were;
-- of rows picked without locks another instance may have taken some.
-- A count at the column's end stays there: an error would stop the whole claim.
-- ids as a JSON array, token, instance, 1 for rows that saw a holder die
update json_table(?, '$[*]' columns (id bigint path '$')) j
straight_join async_command c force index (primary) on c.id = j.id
set c.run_no = least(c.run_no, 2147483646) + 1, c.claim_token = ?, c.claimed_by = ?, c.progress = null,
    c.updated_at = utc_timestamp(6), c.status = 'RUNNING'
where c.status = 'PENDING' and c.suspect = ? and c.next_run_at <= utc_timestamp(6)
