-- Receipts whose rows have all ended, as the caller has counted.
-- $1 tokens
delete from async_command_claim where token = any ($1::uuid[])
