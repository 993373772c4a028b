-- A write that changes nothing: fails where nothing can be written.
update async_command_migration set at = at where version = 0
