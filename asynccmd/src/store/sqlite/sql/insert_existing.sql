-- The commands that stand in the way of unique ones.
-- ?1 a JSON array of [type, key]
select j.key, c.id, c.uid, c.status
from json_each(?1) j cross join async_command c
where c.cmd_type = j.value ->> 0 and c.unique_key = j.value ->> 1
  and c.unique_key is not null
  and (c.status = 'PENDING' or (c.status = 'RUNNING' and c.unique_scope = 1))
