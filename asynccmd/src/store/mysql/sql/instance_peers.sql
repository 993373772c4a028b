-- The other instances.
-- Where a row does not say its stall timeout, it is the default.
-- instance
select id, timestampdiff(microsecond, timestamp'1970-01-01 00:00:00', heartbeat_at),
       coalesce(cast(json_extract(meta, '$.stall') as signed), 60000000)
from async_command_instance where id <> ?
