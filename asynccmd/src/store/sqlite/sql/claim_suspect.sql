-- PENDING → RUNNING for the first due row that saw its holder die: one, whatever its level, so that
-- the guilty one of a batch is found by itself.
-- ?1 types as a JSON array, ?2 now, ?3 instance, ?4 token
update async_command not indexed
set status = 'RUNNING', run_no = min(run_no, 2147483646) + 1, claim_token = ?4, claimed_by = ?3, updated_at = ?2,
    progress = null
where id = (
    select c.id
    from json_each(?1) t
    cross join async_command c not indexed
    where c.id = (
        select i.id from async_command i
        where i.cmd_type = t.value
          and i.status = 'PENDING' and i.crash_count > 0 and i.next_run_at <= ?2
        order by i.next_run_at, i.id
        limit 1
    )
    order by c.next_run_at, c.id
    limit 1
)
and exists (select 1 from async_command_instance where id = ?3)
returning id, uid, cmd_type, biz_key, payload, metadata, max_retry, retry_count, crash_count, run_no,
          created_at, priority, next_run_at, payload_version
