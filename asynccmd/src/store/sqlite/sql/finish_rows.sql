-- RUNNING → where each ending says, fenced. A kill that was asked for wins over it, and so does a newer
-- command with the same key of scope 2 (until started), which PENDING would collide with.
-- ?1 a JSON array of
--    [id, token in hexadecimal, status, failures to count, due, result, error, reason,
--     1 where the deaths of holders stay as counted]
-- ?2 now
with given (id, token, word, counted, due, result, error, reason, deaths_stay) as materialized (
    select value ->> 0, unhex(value ->> 1), value ->> 2, value ->> 3, value ->> 4, value ->> 5,
           value ->> 6, value ->> 7, value ->> 8
    from json_each(?1)
),
ending as materialized (
    select g.*, c.kill_reason as asked,
           case when g.word = 'PENDING' and c.unique_scope = 2 and c.kill_reason is null then (
               select o.id from async_command o
               where o.cmd_type = c.cmd_type and o.unique_key = c.unique_key
                 and o.unique_key is not null
                 and (o.status = 'PENDING' or (o.status = 'RUNNING' and o.unique_scope = 1))
                 and o.id <> c.id
           ) end as successor
    from given g cross join async_command c
    where c.id = g.id and c.status = 'RUNNING' and c.claim_token = g.token
)
update async_command
set status = case when e.asked is null and e.successor is null then e.word else 'KILLED' end,
    retry_count = min(retry_count + e.counted, 2147483647),
    crash_count = case when e.deaths_stay then crash_count else 0 end,
    next_run_at = coalesce(e.due, next_run_at),
    result = case when e.asked is null then e.result end,
    last_error = coalesce(e.error, last_error),
    kill_reason = coalesce(e.asked, 'superseded by #' || e.successor, e.reason),
    claim_token = null, claimed_by = null, updated_at = ?2,
    finished_at = case when e.word = 'PENDING' and e.asked is null and e.successor is null
                       then null else ?2 end
from ending e
where async_command.id = e.id
returning id, run_no, status
