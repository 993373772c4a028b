-- One command, values bound one by one: what a single submit costs. The server's refusal of a duplicate
-- leaves the caller's transaction as it was.
-- uid, type, business key, unique key, scope of uniqueness, payload, payload version, level, shard,
-- max_retry, microseconds since 1970 or null, microseconds from now or null, metadata, owner, parent
insert into async_command (uid, cmd_type, biz_key, unique_key, unique_scope, payload, payload_version,
                           priority, shard, max_retry, next_run_at, metadata, owner, parent_id,
                           created_at, updated_at)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
        coalesce(timestamp'1970-01-01 00:00:00' + interval ? microsecond,
                 utc_timestamp(6) + interval least(?, timestampdiff(microsecond, utc_timestamp(6), timestamp'9999-12-31 23:59:59.999999')) microsecond),
        ?, ?, ?, utc_timestamp(6), utc_timestamp(6))
