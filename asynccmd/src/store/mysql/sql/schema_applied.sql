-- Two nodes of a cluster may have done it at once.
-- version, name
insert into async_command_migration (version, name, at) values (?, ?, utc_timestamp(6))
on duplicate key update version = version
