-- Receipts whose rows have all ended, as the caller has counted.
-- tokens in hexadecimal as a JSON array
delete r
from json_table(?, '$[*]' columns (token char(32) character set ascii path '$')) t
straight_join async_command_claim r force index (primary) on r.token = unhex(t.token)
