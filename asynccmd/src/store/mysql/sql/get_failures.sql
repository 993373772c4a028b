-- The failed attempts of a command, oldest first.
-- id
select run_no, kind, error, instance, at from async_command_failure
where command_id = ? order by run_no
