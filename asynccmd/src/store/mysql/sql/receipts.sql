-- The receipts of an instance.
-- instance
select token, ids from async_command_claim where instance = ?
