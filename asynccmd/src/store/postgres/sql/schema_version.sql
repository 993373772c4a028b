-- The newest migration that this database has had.
select coalesce(max(version), 0) from async_command_migration
