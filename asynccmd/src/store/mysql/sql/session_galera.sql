-- On a node of a Galera cluster: whoever reads, or looks for a row to write, sees what was committed at any
-- node before, once per transaction. A line is replaced after an error, and its next connection may end at
-- another node, as may that of another line; there, without this,
--   a heartbeat would not find the row that was registered a moment ago, and take its lease for lost;
--   an end would not find the claim that it ends, and a row's own attempt be told that it was taken away;
--   a claim would not find its instance, and a client's own commit be looked for in vain until the next poll.
-- What deletes needs none of it: another node's newer heartbeat or row refuses it when it is committed.
-- 1: reads, and begins of transactions, 2: updates and deletes.
set session wsrep_sync_wait = 3
