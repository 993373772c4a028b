-- Finished rows past their retention, which are locked.
-- ids as a JSON array
delete c
from json_table(?, '$[*]' columns (id bigint path '$')) j
straight_join async_command c force index (primary) on c.id = j.id
where c.status in ('SUCCESS', 'KILLED')
