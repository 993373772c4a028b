-- Whether the instance has its lease.
-- ?1 instance
select exists (select 1 from async_command_instance where id = ?1)
