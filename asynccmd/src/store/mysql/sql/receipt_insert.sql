-- The receipt of a claim round, in the transaction that marked its rows; none without the instance's
-- row. It inherits `closing`.
-- token, ids as a JSON array, instance
insert into async_command_claim (token, instance, ids, at, closing)
select ?, i.id, ?, utc_timestamp(6), coalesce(json_extract(i.meta, '$.closing') = 1, 0)
from async_command_instance i where i.id = ?
