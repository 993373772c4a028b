-- The live commands that have taken the keys of commands of scope 2 (until started).
-- a JSON array of [type, key]
select cast(j.position as signed), o.id
from json_table(?, '$[*]' columns (
         position for ordinality,
         cmd_type varchar(64) character set ascii collate ascii_bin path '$[0]',
         unique_key varchar(128) path '$[1]')) j
straight_join async_command o force index (async_command_unique) on o.cmd_type = j.cmd_type and o.unique_key = j.unique_key and o.unique_live = 1
