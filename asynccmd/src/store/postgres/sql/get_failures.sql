-- The failed attempts of a command, oldest first.
-- $1 id
select run_no, kind, error, instance, at from async_command_failure
where command_id = $1 order by run_no
