-- $1 version, $2 name
insert into async_command_migration (version, name, at) values ($1, $2, statement_timestamp())
