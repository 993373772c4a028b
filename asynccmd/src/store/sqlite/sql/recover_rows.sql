-- RUNNING → PENDING, DEAD or KILLED for the rows of these receipts.
-- The first death only marks a row, whatever its `max_retry`: it may never have started. A type that
-- this binary does not know goes to PENDING always.
-- ?1 receipts in hexadecimal as a JSON array, ?2 ids as a JSON array, or null for all, ?3 now,
-- ?4 known types as a JSON array
with held as materialized (
    select c.id, c.cmd_type, c.unique_key, c.unique_scope, c.kill_reason as asked, c.max_retry,
           min(c.crash_count + (not r.closing), 2147483647) as crashes, r.closing
    from json_each(?1) t
    cross join async_command_claim r
    cross join json_each(r.ids) j
    cross join async_command c
    where r.token = unhex(t.value)
      and c.id = j.value and c.status = 'RUNNING' and c.claim_token = r.token
      and (?2 is null or c.id in (select value from json_each(?2)))
),
judged as materialized (
    select h.*,
           not h.closing and h.crashes >= 2 and h.crashes > h.max_retry
               and h.cmd_type in (select value from json_each(?4)) as doomed,
           case when h.unique_scope = 2 then (
               select o.id from async_command o
               where o.cmd_type = h.cmd_type and o.unique_key = h.unique_key
                 and o.unique_key is not null
                 and (o.status = 'PENDING' or (o.status = 'RUNNING' and o.unique_scope = 1))
                 and o.id <> h.id
           ) end as successor
    from held h
)
update async_command
set status = case when e.asked is not null then 'KILLED'
                  when e.doomed then 'DEAD'
                  when e.successor is not null then 'KILLED'
                  else 'PENDING' end,
    kill_reason = case when e.asked is not null then e.asked
                       when e.doomed then null
                       when e.successor is not null then 'superseded by #' || e.successor end,
    crash_count = e.crashes,
    last_error = case when e.closing then last_error
                      when e.crashes > 1
                      then 'the instance that held the command died, ' || e.crashes || ' times in a row'
                      else 'the instance that held the command died' end,
    next_run_at = ?3,
    claim_token = null, claimed_by = null, updated_at = ?3,
    finished_at = case when e.asked is null and not e.doomed and e.successor is null
                       then null else ?3 end
from judged e
where async_command.id = e.id
returning id, cmd_type, biz_key, last_error, status
