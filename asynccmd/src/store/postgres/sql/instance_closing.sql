-- The mark is on the receipts too: it outlives the instance's row, which is gone when recovery asks.
-- $1 instance
with receipt as (
    update async_command_claim set closing = 1 where instance = $1
)
update async_command_instance set meta = meta || '{"closing": 1}' where id = $1
