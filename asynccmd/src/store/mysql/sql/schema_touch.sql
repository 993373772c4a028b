-- A write that changes nothing: fails where the server cannot be written.
update async_command_migration set at = at where version = 0
