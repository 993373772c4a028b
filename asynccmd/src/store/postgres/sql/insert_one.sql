-- One command, values bound one by one: what a single submit costs.
-- Due at $11, or else $12 microseconds from now.
insert into async_command (uid, cmd_type, biz_key, unique_key, unique_scope, payload, payload_version,
                           priority, shard, max_retry, next_run_at, metadata, owner, parent_id,
                           created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
        least(coalesce($11, statement_timestamp() + $12::bigint * interval '1 microsecond'),
              '9999-12-31 23:59:59.999999Z'),
        $13, $14, $15, statement_timestamp(), statement_timestamp())
on conflict (cmd_type, unique_key)
    where unique_key is not null
      and (status = 'PENDING' or (status = 'RUNNING' and unique_scope = 1))
    do nothing
returning id, uid
