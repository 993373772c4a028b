-- Receipts whose rows have all ended, as the caller has counted.
-- ?1 tokens in hexadecimal as a JSON array
delete from async_command_claim
where token in (select unhex(value) from json_each(?1))
