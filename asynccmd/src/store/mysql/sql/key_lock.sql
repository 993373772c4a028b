-- Live rows along the unique index: first the key, then the row, as a duplicate locks them. It gets its
-- `for update` in text.rs.
-- a JSON array of [id, type, key]
select c.id
from json_table(?, '$[*]' columns (
         id bigint path '$[0]',
         cmd_type varchar(64) character set ascii collate ascii_bin path '$[1]',
         unique_key varchar(128) path '$[2]')) j
straight_join async_command c force index (async_command_unique) on c.cmd_type = j.cmd_type and c.unique_key = j.unique_key and c.unique_live = 1
where c.id = j.id
