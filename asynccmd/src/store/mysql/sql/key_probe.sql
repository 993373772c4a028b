-- Whether another transaction has one of these keys: written or read for a write, and not committed. The
-- error is the answer. The key's record alone is read: its row may be anybody's.
-- a JSON array of [type, key]
select c.unique_live
from json_table(?, '$[*]' columns (
         cmd_type varchar(64) character set ascii collate ascii_bin path '$[0]',
         unique_key varchar(128) path '$[1]')) j
straight_join async_command c force index (async_command_unique) on c.cmd_type = j.cmd_type and c.unique_key = j.unique_key and c.unique_live = 1
/*!80001 for share of c nowait */ /*M! lock in share mode nowait */
