-- What failed, in full.
-- ?1 a JSON array of [id, run_no, kind, instance, error], ?2 now
insert into async_command_failure (command_id, run_no, kind, at, instance, error)
select value ->> 0, value ->> 1, value ->> 2, ?2, value ->> 3, value ->> 4
from json_each(?1)
where true
on conflict (command_id, run_no) do nothing
