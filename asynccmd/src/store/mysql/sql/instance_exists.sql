-- Whether the instance has its lease.
-- instance
select cast(exists(select 1 from async_command_instance where id = ?) as signed)
