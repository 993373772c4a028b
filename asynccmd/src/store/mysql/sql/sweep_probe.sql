-- The next rows in the order of the primary key, and which of them are past their retention. Finished
-- rows are in no index that tells their age: that is what makes them cost nothing.
-- default retention, after, how many, a JSON array of [type, retention]
select page.id,
       page.status in ('SUCCESS', 'KILLED')
           and page.finished_at < utc_timestamp(6) - interval coalesce(r.keep, ?) microsecond
from (select id, status, cmd_type, finished_at from async_command
      where id > ? order by id limit ?) page
left join json_table(?, '$[*]' columns (
         cmd_type varchar(64) character set ascii collate ascii_bin path '$[0]',
         keep bigint path '$[1]')) r on r.cmd_type = page.cmd_type
order by page.id
