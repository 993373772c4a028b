-- The commands that stand in the way of unique ones. A locking read, whatever the caller's isolation:
-- its snapshot may be older than they are, and they must not run before what the caller writes is there.
-- (MySQL must be told that the list is not to be locked, and MariaDB does not know how to say so.)
-- a JSON array of [type, key]
select cast(j.position as signed), c.id, c.uid, c.status
from json_table(?, '$[*]' columns (
         position for ordinality,
         cmd_type varchar(64) character set ascii collate ascii_bin path '$[0]',
         unique_key varchar(128) path '$[1]')) j
straight_join async_command c force index (async_command_unique) on c.cmd_type = j.cmd_type and c.unique_key = j.unique_key and c.unique_live = 1
/*!80001 for share of c */ /*M! lock in share mode */
