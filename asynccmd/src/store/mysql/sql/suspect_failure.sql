-- The failures of rows that became DEAD without a start. A death that is on record already stays one.
-- instance, ids as a JSON array
insert into async_command_failure (command_id, run_no, kind, at, instance, error)
select c.id, c.run_no, 'crashed', c.updated_at, ?, c.last_error
from json_table(?, '$[*]' columns (id bigint path '$')) j
straight_join async_command c force index (primary) on c.id = j.id
on duplicate key update command_id = async_command_failure.command_id
