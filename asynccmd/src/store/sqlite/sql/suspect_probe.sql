-- What a suspect claim could do, without taking any lock: whether the instance has its lease, whether
-- a row of the known types died too often, when the first one is due, and when the first after now.
-- ?1 types to run as a JSON array, ?2 now, ?3 instance, ?4 all known types as a JSON array
select exists (select 1 from async_command_instance where id = ?3) as lease,
       exists (
           select 1 from json_each(?4) t cross join async_command c
           where c.cmd_type = t.value and c.status = 'PENDING' and c.crash_count > 0
             and c.crash_count >= 2 and c.crash_count > c.max_retry
       ) as doomed,
       (select min(first_at) from (
           select (select min(c.next_run_at) from async_command c
                    where c.cmd_type = t.value and c.status = 'PENDING' and c.crash_count > 0) as first_at
           from json_each(?1) t)) as first_at,
       (select min(next_at) from (
           select (select min(c.next_run_at) from async_command c
                    where c.cmd_type = t.value and c.status = 'PENDING' and c.crash_count > 0
                      and c.next_run_at > ?2) as next_at
           from json_each(?1) t)) as next_at
