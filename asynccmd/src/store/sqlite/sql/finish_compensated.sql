-- DEAD, as this transaction has written it: which command compensates for it.
-- ?1 a JSON array of [id, id of its compensation]
update async_command
set compensation = g.value ->> 1
from json_each(?1) g
where async_command.id = g.value ->> 0 and async_command.status = 'DEAD'
