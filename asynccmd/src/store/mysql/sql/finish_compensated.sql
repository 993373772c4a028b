-- DEAD, as this transaction has written it: which command compensates for it.
-- a JSON array of [id, id of its compensation]
update async_command c
join json_table(?, '$[*]' columns (id bigint path '$[0]', compensation bigint path '$[1]')) g on g.id = c.id
set c.compensation = g.compensation
where c.status = 'DEAD'
