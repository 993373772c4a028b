-- The next rows in the order of the primary key, and which of them are past their retention. No
-- finished row is in any index (but DEAD ones, which stay): that is what makes them cost nothing.
-- ?1 after, ?2 how many, ?3 now, ?4 default retention, ?5 a JSON object of retentions by type
select max(id), count(*),
       json_group_array(id) filter (
           where status in ('SUCCESS', 'KILLED')
             and finished_at < ?3 - coalesce((select r.value from json_each(?5) r where r.key = cmd_type), ?4)
       )
from (
    select id, status, cmd_type, finished_at from async_command
    where id > ?1 order by id limit +?2
)
