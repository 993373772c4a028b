-- Many commands that share what the attribute says, as those of a batch do: half the time of
-- `insert_many`, which takes every value of every row out of the JSON text.
-- ?1 a JSON array of [uid, business key, shard, payload, due, metadata, parent], ?2 now, ?3 type,
-- ?4 scope of uniqueness, ?5 payload version, ?6 level, ?7 max_retry, ?8 owner
insert into async_command (uid, cmd_type, biz_key, unique_key, unique_scope, payload, payload_version,
                           priority, shard, max_retry, next_run_at, metadata, owner, parent_id,
                           created_at, updated_at)
select unhex(value ->> 0), ?3, value ->> 1, case when ?4 is not null then value ->> 1 end, ?4,
       value ->> 3, ?5, ?6, value ->> 2, ?7, value ->> 4, value ->> 5, ?8, value ->> 6, ?2, ?2
from json_each(?1)
where true
on conflict (cmd_type, unique_key)
    where unique_key is not null
      and (status = 'PENDING' or (status = 'RUNNING' and unique_scope = 1))
    do nothing
returning id, uid
