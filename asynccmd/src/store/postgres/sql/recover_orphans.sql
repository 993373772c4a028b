-- Receipts of instances without a row: of the dead, and of those that left in order.
-- $1 the token to go on after, or null, $2 how many
select r.token, r.ids from async_command_claim r
where r.token > coalesce($1, '00000000-0000-0000-0000-000000000000')
  and not exists (select from async_command_instance i where i.id = r.instance)
order by r.token
limit $2
