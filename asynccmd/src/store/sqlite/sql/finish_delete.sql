-- The same for rows that nobody wants to keep.
-- ?1 ids as a JSON array, ?2 token
delete from async_command not indexed
where id in (select value from json_each(?1))
  and status = 'RUNNING' and claim_token = ?2 and kill_reason is null
