-- PENDING → RUNNING for the first rows of one want, under the write lock.
-- One index range a type and level, each read no further than the room; a want's types share the
-- room. `not indexed` leaves the outer table nothing but its primary key: without it the planner may
-- walk all PENDING rows. A count at the column's end stays there: an error would stop the whole claim.
-- `limit +?5`, because a bare variable there is part of the plan, which is then made anew with every claim.
-- ?1 types as a JSON array, ?2 now, ?3 instance, ?4 token, ?5 room
update async_command not indexed
set status = 'RUNNING', run_no = min(run_no, 2147483646) + 1, claim_token = ?4, claimed_by = ?3, updated_at = ?2,
    progress = null
where id in (
    select c.id
    from json_each(?1) t
    cross join (values (-2), (-1), (0), (1), (2)) l
    cross join async_command c not indexed
    where c.id in (
        select i.id from async_command i
        where i.cmd_type = t.value and i.priority = l.column1
          and i.status = 'PENDING' and i.crash_count = 0 and i.next_run_at <= ?2
        order by i.next_run_at, i.id
        limit +?5
    )
    order by l.column1, c.next_run_at, c.id
    limit +?5
)
and exists (select 1 from async_command_instance where id = ?3)
returning id, uid, cmd_type, biz_key, payload, metadata, max_retry, retry_count, crash_count, run_no,
          created_at, priority, next_run_at, payload_version
