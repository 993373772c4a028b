-- What claims could take, without taking any lock: an idle poll is this one statement.
-- By kind: 0, an instance that has its lease; 1, in how many microseconds the first row of a type and level
-- is due; 2, the first one after now. All types that have PENDING rows, asked for or not: two index seeks
-- each ("Using index for group-by"), however many rows they have. A seek for each type asked for would be
-- a correlated query, and for that MySQL sorts the whole range.
-- A text without parameters, never prepared: where MariaDB (10.11) has to open the table anew for a
-- prepared statement, as it does whenever more connections use it than before, that statement reads the
-- rows behind the index from then on, all of them.
select 0 as kind, null as due_type, 0 as suspect, 0 as level, id as due_in
from async_command_instance
union all
select 1, due_type, suspect, priority, timestampdiff(microsecond, utc_timestamp(6), min(next_run_at))
from async_command force index (async_command_due)
where due_type is not null
group by due_type, suspect, priority
union all
select 2, due_type, suspect, priority, timestampdiff(microsecond, utc_timestamp(6), min(next_run_at))
from async_command force index (async_command_due)
where due_type is not null and next_run_at > utc_timestamp(6)
group by due_type, suspect, priority
