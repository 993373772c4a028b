-- The types of PENDING rows: one index seek a type, however many rows it has.
with recursive
    due (cmd_type) as (
        select (select min(cmd_type::text) from async_command
                 where status = 'PENDING' and crash_count = 0)
        union all
        select (select min(c.cmd_type::text) from async_command c
                 where c.status = 'PENDING' and c.crash_count = 0 and c.cmd_type > due.cmd_type)
        from due where due.cmd_type is not null
    ),
    suspect (cmd_type) as (
        select (select min(cmd_type::text) from async_command
                 where status = 'PENDING' and crash_count > 0)
        union all
        select (select min(c.cmd_type::text) from async_command c
                 where c.status = 'PENDING' and c.crash_count > 0 and c.cmd_type > suspect.cmd_type)
        from suspect where suspect.cmd_type is not null
    )
select cmd_type from due where cmd_type is not null
union
select cmd_type from suspect where cmd_type is not null
order by 1
