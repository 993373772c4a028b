-- PENDING → DEAD for rows that were found doomed and are locked.
-- ids as a JSON array
update json_table(?, '$[*]' columns (id bigint path '$')) j
straight_join async_command c force index (primary) on c.id = j.id
set c.last_error = concat('the instance that held the command died, ', c.crash_count, ' times in a row'),
    c.updated_at = utc_timestamp(6), c.finished_at = utc_timestamp(6), c.status = 'DEAD'
where c.status = 'PENDING'
