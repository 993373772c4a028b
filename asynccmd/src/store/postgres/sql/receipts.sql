-- The receipts of an instance.
-- $1 instance
select token, ids from async_command_claim where instance = $1
