-- The deaths of the holders, before the rows forget who held them. A holder that was closing did not
-- crash.
-- ?1 receipts in hexadecimal as a JSON array, ?2 ids as a JSON array, or null for all, ?3 now
insert into async_command_failure (command_id, run_no, kind, at, instance, error)
select c.id, c.run_no, 'crashed', ?3, c.claimed_by,
       'the instance that held the command died'
       || case when c.crash_count > 0 then ', ' || (c.crash_count + 1) || ' times in a row' else '' end
from json_each(?1) t
cross join async_command_claim r
cross join json_each(r.ids) j
cross join async_command c
where r.token = unhex(t.value) and not r.closing
  and c.id = j.value and c.status = 'RUNNING' and c.claim_token = r.token
  and (?2 is null or c.id in (select value from json_each(?2)))
on conflict (command_id, run_no) do nothing
