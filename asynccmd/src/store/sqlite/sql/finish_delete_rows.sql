-- RUNNING → gone in the place of SUCCESS, row by row; a row that is to be killed stays for
-- `finish_rows`.
-- ?1 a JSON array of [id, token in hexadecimal]
delete from async_command not indexed
where id in (
    select c.id
    from json_each(?1) j cross join async_command c
    where c.id = j.value ->> 0 and c.status = 'RUNNING' and c.claim_token = unhex(j.value ->> 1)
      and c.kill_reason is null
)
returning id, run_no
