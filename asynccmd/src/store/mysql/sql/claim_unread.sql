-- Rows of a claim that cannot be read, moved to a token of their own: nobody runs them, so nobody ends
-- them, and the receipt of the others must not wait for that nor go without it.
-- ids as a JSON array, their own token, the claim's
update json_table(?, '$[*]' columns (id bigint path '$')) j
straight_join async_command c force index (primary) on c.id = j.id
set c.claim_token = ?
where c.status = 'RUNNING' and c.claim_token = ?
