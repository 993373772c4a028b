-- Receipts without a row that is RUNNING under their token. A statement of its own: the one that ended
-- the rows would still see them RUNNING.
-- $1 tokens
delete from async_command_claim r
where r.token = any ($1::uuid[])
  and not exists (
      select from unnest(r.ids) j (id)
      cross join lateral (
          select from async_command c
          where c.id = j.id and c.status = 'RUNNING' and c.claim_token = r.token
          limit 1
      ) c
  )
