-- How long this transaction waits for another's lock.
set local lock_timeout = '50ms'
