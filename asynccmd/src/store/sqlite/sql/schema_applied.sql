-- ?1 version, ?2 name, ?3 now
insert into async_command_migration (version, name, at) values (?1, ?2, ?3)
