-- Failures follow their command.
-- ids as a JSON array
delete f
from json_table(?, '$[*]' columns (id bigint path '$')) j
straight_join async_command_failure f force index (primary) on f.command_id = j.id
