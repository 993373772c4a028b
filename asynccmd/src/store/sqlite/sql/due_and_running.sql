-- How many rows of these types are due, by index ranges, and how many are held, by receipts.
-- ?1 types as a JSON array, ?2 now
select (select count(*)
        from json_each(?1) t
        cross join (values (-2), (-1), (0), (1), (2)) l
        cross join async_command c
        where c.cmd_type = t.value and c.priority = l.column1
          and c.status = 'PENDING' and c.crash_count = 0 and c.next_run_at <= ?2)
     + (select count(*)
        from json_each(?1) t
        cross join async_command c
        where c.cmd_type = t.value and c.status = 'PENDING' and c.crash_count > 0
          and c.next_run_at <= ?2),
       (select count(*)
        from async_command_claim r
        cross join json_each(r.ids) j
        cross join async_command c
        where c.id = j.value and c.status = 'RUNNING' and c.claim_token = r.token
          and c.cmd_type in (select value from json_each(?1)))
