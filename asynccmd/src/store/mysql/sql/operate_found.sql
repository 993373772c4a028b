-- The state of a command, the kill that was asked for, the live command that has its unique key, and its
-- compensation.
-- Waits for the row's lock: what an operator asks of one command is worth that.
-- id
select c.status, c.kill_reason, c.unique_scope, (
    select o.id from async_command o
    where o.cmd_type = c.cmd_type and o.unique_key = c.unique_key and o.unique_live = 1 and o.id <> c.id
), c.compensation
from async_command c where c.id = ?
for update
