-- A write that changes nothing: fails where the file cannot be written (`begin immediate` does not).
update async_command_migration set at = at where version = 0
