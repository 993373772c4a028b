-- The receipt of a claim round, in the transaction that marked its rows. It inherits `closing`.
-- ?1 token, ?2 instance, ?3 ids as a JSON array, ?4 now
insert into async_command_claim (token, instance, ids, at, closing)
select ?1, id, ?3, ?4, coalesce(meta ->> '$.closing', 0)
from async_command_instance where id = ?2
