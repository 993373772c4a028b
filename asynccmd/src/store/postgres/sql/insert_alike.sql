-- Many commands that share what the attribute says, as those of a batch do, and are not unique: no
-- conflict to look for, and few values a row.
-- $1 uids, $2 business keys, $3 shards, $4 payloads, $5 due times or null, $6 microseconds until due,
-- $7 metadata, $8 parents; $9 type, $10 payload version, $11 level, $12 max_retry, $13 owner
insert into async_command (uid, cmd_type, biz_key, payload, payload_version, priority, shard, max_retry,
                           next_run_at, metadata, owner, parent_id, created_at, updated_at)
select g.uid, $9, g.biz_key, g.payload, $10, $11, g.shard, $12,
       least(coalesce(g.due, statement_timestamp() + g.wait * interval '1 microsecond'),
             '9999-12-31 23:59:59.999999Z'),
       g.metadata, $13, g.parent, statement_timestamp(), statement_timestamp()
from unnest($1::uuid[], $2::text[], $3::smallint[], $4::text[], $5::timestamptz[], $6::bigint[],
            $7::text[], $8::bigint[])
     with ordinality g (uid, biz_key, shard, payload, due, wait, metadata, parent, at)
order by g.at
returning id, uid
