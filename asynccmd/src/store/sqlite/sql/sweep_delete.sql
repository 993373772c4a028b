-- Finished rows past their retention.
-- ?1 ids as a JSON array
delete from async_command not indexed
where id in (select value from json_each(?1)) and status in ('SUCCESS', 'KILLED')
