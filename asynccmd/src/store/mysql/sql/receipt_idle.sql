-- Of these receipts those without a row that is RUNNING under their token. A read apart from the delete:
-- an update's subquery would lock the rows that it looks at, and wait for those of others.
-- tokens in hexadecimal as a JSON array
select hex(r.token)
from json_table(?, '$[*]' columns (token char(32) character set ascii path '$')) t
straight_join async_command_claim r force index (primary) on r.token = unhex(t.token)
where not exists (
    select 1
    from json_table(r.ids, '$[*]' columns (id bigint path '$')) j
    straight_join async_command c force index (primary) on c.id = j.id
    where c.status = 'RUNNING' and c.claim_token = r.token
)
