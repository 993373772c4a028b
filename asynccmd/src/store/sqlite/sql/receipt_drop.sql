-- Receipts without a row that is RUNNING under their token.
-- ?1 tokens in hexadecimal as a JSON array
delete from async_command_claim
where token in (select unhex(value) from json_each(?1))
  and not exists (
      select 1
      from json_each(async_command_claim.ids) j cross join async_command c
      where c.id = j.value and c.status = 'RUNNING' and c.claim_token = async_command_claim.token
  )
