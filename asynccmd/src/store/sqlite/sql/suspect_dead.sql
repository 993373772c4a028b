-- PENDING → DEAD for rows whose holders died more often than the first time and `max_retry`: a binary
-- that did not know their type has left them so.
-- ?1 all known types as a JSON array, ?2 now
update async_command not indexed
set status = 'DEAD', updated_at = ?2, finished_at = ?2,
    last_error = 'the instance that held the command died, ' || crash_count || ' times in a row'
where id in (
    select c.id from json_each(?1) t cross join async_command c
    where c.cmd_type = t.value and c.status = 'PENDING' and c.crash_count > 0
      and c.crash_count >= 2 and c.crash_count > c.max_retry
)
returning id, cmd_type, biz_key, last_error
