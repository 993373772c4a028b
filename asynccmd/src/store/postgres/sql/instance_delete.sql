-- $1 instance
delete from async_command_instance where id = $1
