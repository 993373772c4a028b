-- The mark outlives the instance's row, which is gone when recovery asks.
-- instance
update async_command_claim set closing = 1 where instance = ?
