-- How many rows of these types are due, by index ranges, and how many are held, by receipts.
-- types as a JSON array, the same again
select (select count(*)
        from json_table(?, '$[*]' columns (
                 due_type varchar(64) character set ascii collate ascii_bin path '$')) t
        cross join (select 0 as suspect union all select 1) s
        cross join (select -2 as level union all select -1 union all select 0 union all select 1 union all select 2) l
        straight_join async_command c force index (async_command_due)
            on c.due_type = t.due_type and c.suspect = s.suspect and c.priority = l.level
           and c.next_run_at <= utc_timestamp(6)),
       (select count(*)
        from async_command_claim r
        straight_join json_table(r.ids, '$[*]' columns (id bigint path '$')) j
        straight_join async_command c force index (primary) on c.id = j.id
        where c.status = 'RUNNING' and c.claim_token = r.token
          and c.cmd_type in (
              select t.cmd_type from json_table(?, '$[*]' columns (
                  cmd_type varchar(64) character set ascii collate ascii_bin path '$')) t))
