-- instance
update async_command_instance set meta = json_set(meta, '$.closing', 1) where id = ?
