-- Many commands in one statement; also among themselves each unique key is inserted once.
-- Each row is taken out of the list once, in binary form: `json_each` would write its text, and `->>`
-- parse it, anew for every column.
-- ?1 a JSON array of arrays, ?2 now
with given (value) as materialized (select jsonb(value) from json_each(?1))
insert into async_command (uid, cmd_type, biz_key, unique_key, unique_scope, payload, payload_version,
                           priority, shard, max_retry, next_run_at, metadata, owner, parent_id,
                           created_at, updated_at)
select unhex(value ->> 0), value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
       value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11,
       value ->> 12, value ->> 13, ?2, ?2
from given
where true
on conflict (cmd_type, unique_key)
    where unique_key is not null
      and (status = 'PENDING' or (status = 'RUNNING' and unique_scope = 1))
    do nothing
returning id, uid
