-- Many commands in one statement; also among themselves each unique key is inserted once.
-- Numbers are given out in the order of the batch. Rows go in by their keys, so that two batches that
-- share keys wait for one another and never both at once.
-- $1 uids, $2 types, $3 business keys, $4 unique keys, $5 scopes, $6 payloads, $7 payload versions,
-- $8 levels, $9 shards, $10 max_retry, $11 due times or null, $12 microseconds until due, $13 metadata,
-- $14 owners, $15 parents
with given as materialized (
    select nextval('async_command_id_seq') as id, g.*
    from (
        select *
        from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::text[],
                    $7::integer[], $8::smallint[], $9::smallint[], $10::integer[], $11::timestamptz[],
                    $12::bigint[], $13::text[], $14::text[], $15::bigint[])
             with ordinality t (uid, cmd_type, biz_key, unique_key, scope, payload, version, priority,
                                shard, max_retry, due, wait, metadata, owner, parent, at)
        order by at
    ) g
)
insert into async_command (id, uid, cmd_type, biz_key, unique_key, unique_scope, payload,
                           payload_version, priority, shard, max_retry, next_run_at, metadata, owner,
                           parent_id, created_at, updated_at)
overriding system value
select id, uid, cmd_type, biz_key, unique_key, scope, payload, version, priority, shard, max_retry,
       least(coalesce(due, statement_timestamp() + wait * interval '1 microsecond'),
             '9999-12-31 23:59:59.999999Z'),
       metadata, owner, parent, statement_timestamp(), statement_timestamp()
from given
order by cmd_type collate "C", unique_key collate "C", at
on conflict (cmd_type, unique_key)
    where unique_key is not null
      and (status = 'PENDING' or (status = 'RUNNING' and unique_scope = 1))
    do nothing
returning id, uid
