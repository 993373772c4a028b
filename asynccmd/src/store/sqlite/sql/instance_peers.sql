-- The other instances.
-- Where a row does not say its stall timeout, it is the default.
-- ?1 instance
select id, heartbeat_at, coalesce(json_extract(meta, '$.stall'), 60000000)
from async_command_instance where id <> ?1
