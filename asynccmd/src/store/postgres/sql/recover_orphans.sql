-- Receipts of instances without a row: of the dead, and of those that left in order.
-- $1 how many
select r.token, r.ids from async_command_claim r
where not exists (select from async_command_instance i where i.id = r.instance)
order by r.at, r.token
limit $1
