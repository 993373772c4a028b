-- PENDING rows whose holders died more often than the first time and `max_retry`: a binary that did not
-- know their type has left them so. Few rows at most are looked at: those that saw a holder die.
-- all known types as a JSON array
select c.id, c.cmd_type, c.biz_key, c.crash_count, c.unique_key
from json_table(?, '$[*]' columns (
         due_type varchar(64) character set ascii collate ascii_bin path '$')) t
straight_join async_command c force index (async_command_due) on c.due_type = t.due_type and c.suspect = 1
where c.crash_count >= 2 and c.crash_count > c.max_retry
