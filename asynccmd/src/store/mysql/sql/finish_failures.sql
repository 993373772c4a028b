-- What failed, in full, at the time that the rows say, which are written before. A failure that is on
-- record stays as it is.
-- a JSON array of [id, run_no, kind, instance, error]
insert into async_command_failure (command_id, run_no, kind, at, instance, error)
select j.id, j.run, j.kind, c.updated_at, j.instance, j.error
from json_table(?, '$[*]' columns (
         id bigint path '$[0]',
         run int path '$[1]',
         kind varchar(32) character set ascii path '$[2]',
         instance bigint path '$[3]',
         error longtext path '$[4]')) j
straight_join async_command c force index (primary) on c.id = j.id
on duplicate key update command_id = async_command_failure.command_id
