-- Whether `migrate` was ever run here.
select to_regclass('async_command_migration') is not null
