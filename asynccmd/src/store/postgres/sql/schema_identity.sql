-- The random identity of this database.
select name from async_command_migration where version = 0
