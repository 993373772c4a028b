-- One migration at a time, until this transaction ends. The number is "asynccmd" in ASCII.
select pg_advisory_xact_lock(7022089759021559140)
