-- The newest dead letters with the kind of their last failure.
-- $1 how many
select c.id, c.cmd_type, c.biz_key, coalesce(c.last_error, ''), (
    select f.kind from async_command_failure f
    where f.command_id = c.id order by f.run_no desc limit 1
)
from async_command c
where c.status = 'DEAD'
order by c.finished_at desc, c.id desc
limit $1
