-- What a suspect claim could do, without taking any lock: whether the instance has its lease, whether
-- a row of the known types died too often, whether one is due, and how long until the next one is.
-- $1 instance, $2 all known types, $3 types to run
select exists (select from async_command_instance where id = $1),
       exists (
           select from async_command
           where cmd_type = any ($2::text[]) and status = 'PENDING' and crash_count > 0
             and crash_count >= 2 and crash_count > max_retry
       ),
       exists (
           select from async_command
           where cmd_type = any ($3::text[]) and status = 'PENDING' and crash_count > 0
             and next_run_at <= statement_timestamp()
       ),
       (
           select min(c.next_run_at)
           from unnest($3::text[]) t (cmd_type)
           cross join lateral (
               select c.next_run_at
               from async_command c
               where c.cmd_type = t.cmd_type and c.status = 'PENDING' and c.crash_count > 0
                 and c.next_run_at > statement_timestamp()
               order by c.next_run_at
               limit 1
           ) c
       ),
       statement_timestamp()
