-- DEAD, as this transaction has written it: which command compensates for it.
-- $1 ids, $2 the compensation of each
update async_command c
set compensation = g.compensation
from unnest($1::bigint[], $2::bigint[]) g (id, compensation)
where c.id = g.id and c.id = any ($1::bigint[]) and c.status = 'DEAD'
