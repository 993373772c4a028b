-- Counts by type and state. Reads the whole table.
select cmd_type, status, count(*), sum(run_no)
from async_command group by cmd_type, status order by cmd_type, status
