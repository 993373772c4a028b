-- The failures of rows that became DEAD without a start. A death that is on record already stays one.
-- ?1 ids as a JSON array, ?2 now, ?3 instance
insert into async_command_failure (command_id, run_no, kind, at, instance, error)
select c.id, c.run_no, 'crashed', ?2, ?3, c.last_error
from json_each(?1) j cross join async_command c
where c.id = j.value
on conflict (command_id, run_no) do nothing
