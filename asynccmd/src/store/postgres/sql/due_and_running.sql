-- How many rows of these types are due, by index ranges, and how many are held, by receipts.
-- $1 types
select (select count(*)
        from async_command c
        where c.cmd_type = any ($1::text[])
          and c.status = 'PENDING' and c.crash_count = 0 and c.next_run_at <= statement_timestamp())
     + (select count(*)
        from async_command c
        where c.cmd_type = any ($1::text[]) and c.status = 'PENDING' and c.crash_count > 0
          and c.next_run_at <= statement_timestamp()),
       (select count(*)
        from async_command_claim r
        cross join lateral unnest(r.ids) j (id)
        cross join lateral (
            select from async_command c
            where c.id = j.id and c.status = 'RUNNING' and c.claim_token = r.token
              and c.cmd_type = any ($1::text[])
            limit 1
        ) c)
