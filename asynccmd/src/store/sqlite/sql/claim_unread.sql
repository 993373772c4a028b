-- Rows of a claim that cannot be read, moved to a token of their own: nobody runs them, so nobody ends
-- them, and the receipt of the others must not wait for that nor go without it.
-- ?1 ids as a JSON array, ?2 the claim's token, ?3 their own
update async_command not indexed
set claim_token = ?3
where id in (select value from json_each(?1)) and status = 'RUNNING' and claim_token = ?2
