-- Finished rows past their retention, locked: one that another session has locked waits for another day.
-- ids as a JSON array
select c.id
from json_table(?, '$[*]' columns (id bigint path '$')) j
straight_join async_command c force index (primary) on c.id = j.id
where c.status in ('SUCCESS', 'KILLED')
for update /*!80001 of c */ skip locked
