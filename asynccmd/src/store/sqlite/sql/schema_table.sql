-- Whether `migrate` was ever run here.
select exists (select 1 from sqlite_master where type = 'table' and name = 'async_command_migration')
