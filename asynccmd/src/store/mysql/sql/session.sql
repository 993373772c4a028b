-- What a connection of ours is, whatever server, pool and hooks make of it.
-- Read committed: under MySQL's default our updates lock gaps, and submitters become victims of it.
-- A short wait for locks: what waits longer is done row by row, or later.
-- A line may be idle for long (reads for health), and must not be hung up on; but see session_open.sql.
set session transaction isolation level read committed;
set session autocommit = 1, innodb_lock_wait_timeout = 1, wait_timeout = 2147483,
    sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE';
