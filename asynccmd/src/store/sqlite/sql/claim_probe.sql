-- What a claim could take, without taking any lock: an idle poll is this one statement.
-- A row a type and level that has anything PENDING: when its first row is due, and when the first
-- one after now. Two index seeks each, however many future rows there are (`min` over an index range
-- stops at its first entry). The row with `position` null says whether the instance has its lease.
-- ?1 types as a JSON array, ?2 now, ?3 instance
select null as position,
       exists (select 1 from async_command_instance where id = ?3) as first_at,
       null as next_at
union all
select position, first_at, next_at
from (
    select t.key as position,
           (select min(c.next_run_at) from async_command c
             where c.cmd_type = t.value and c.priority = l.column1
               and c.status = 'PENDING' and c.crash_count = 0) as first_at,
           (select min(c.next_run_at) from async_command c
             where c.cmd_type = t.value and c.priority = l.column1
               and c.status = 'PENDING' and c.crash_count = 0
               and c.next_run_at > ?2) as next_at
    from json_each(?1) t cross join (values (-2), (-1), (0), (1), (2)) l
)
where first_at is not null
