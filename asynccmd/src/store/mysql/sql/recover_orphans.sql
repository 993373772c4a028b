-- Receipts of instances without a row: of the dead, and of those that left in order.
-- the token to go on after, or nothing; how many
select r.token, r.ids from async_command_claim r
where r.token > ? and not exists (select 1 from async_command_instance i where i.id = r.instance)
order by r.token
limit ?
