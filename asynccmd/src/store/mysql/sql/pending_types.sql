-- The types of PENDING rows: one index seek a type, however many rows it has ("Using index for
-- group-by"). Never prepared, as claim_probe.sql.
select due_type from async_command force index (async_command_due)
where due_type is not null group by due_type
