-- Many commands that share what the attribute says and are not unique: each gets a row, numbered one after
-- another in the order of the array.
-- ?1 a JSON array of [uid, business key, shard, payload, due, metadata, parent], ?2 now, ?3 type,
-- ?4 payload version, ?5 level, ?6 max_retry, ?7 owner
insert into async_command (uid, cmd_type, biz_key, payload, payload_version, priority, shard, max_retry,
                           next_run_at, metadata, owner, parent_id, created_at, updated_at)
select unhex(value ->> 0), ?3, value ->> 1, value ->> 3, ?4, ?5, value ->> 2, ?6, value ->> 4, value ->> 5,
       ?7, value ->> 6, ?2, ?2
from json_each(?1)
