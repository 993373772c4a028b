-- The state of a command, the kill that was asked for, the live command that has its unique key, and its
-- compensation.
-- Waits for whoever holds the row: what is found stays until this transaction ends.
-- $1 id
select c.status, c.kill_reason, c.unique_scope, (
    select o.id from async_command o
    where o.cmd_type = c.cmd_type and o.unique_key = c.unique_key and o.unique_key is not null
      and (o.status = 'PENDING' or (o.status = 'RUNNING' and o.unique_scope = 1))
      and o.id <> c.id
), c.compensation
from async_command c where c.id = $1
for no key update of c
