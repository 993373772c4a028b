-- Whose the first and the last row of a batch are.
-- ?1 id, ?2 id
select (select uid from async_command where id = ?1), (select uid from async_command where id = ?2)
