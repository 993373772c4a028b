-- Failures follow their command.
-- ?1 ids as a JSON array
delete from async_command_failure where command_id in (select value from json_each(?1))
