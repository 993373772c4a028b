-- Held for a migration's time by a connection apart: DDL commits whatever transaction it is in.
select version from async_command_migration where version = 0 for update
