-- What a claim could take, without taking any lock: an idle poll is this one statement.
-- A row a type and level that has anything PENDING: its position among the types from 1, the level, in
-- how many microseconds its first row is due, and the first one after now. Two index seeks each, however
-- many future rows there are: ordered and limited, because `min` in a correlated query reads the whole
-- range. The row of position 0 says whether the instance has its lease.
-- instance, 1 for rows that saw a holder die, the same again, types as a JSON array
select 0 as position, 0 as level,
       cast(exists(select 1 from async_command_instance where id = ?) as signed) as first_in,
       null as next_in
union all
select position, level, first_in, next_in
from (
    select cast(t.position as signed) as position, l.level,
           timestampdiff(microsecond, utc_timestamp(6), (
               select c.next_run_at from async_command c force index (async_command_due)
               where c.due_type = t.due_type and c.suspect = ? and c.priority = l.level
               order by c.next_run_at limit 1)) as first_in,
           timestampdiff(microsecond, utc_timestamp(6), (
               select c.next_run_at from async_command c force index (async_command_due)
               where c.due_type = t.due_type and c.suspect = ? and c.priority = l.level
                 and c.next_run_at > utc_timestamp(6)
               order by c.next_run_at limit 1)) as next_in
    from json_table(?, '$[*]' columns (
             position for ordinality,
             due_type varchar(64) character set ascii collate ascii_bin path '$')) t
    cross join (select -2 as level union all select -1 union all select 0 union all select 1 union all select 2) l
) lane
where first_in is not null
