-- Many commands in one statement, all or none: a duplicate refuses it.
-- a JSON array of arrays
insert into async_command (uid, cmd_type, biz_key, unique_key, unique_scope, payload, payload_version,
                           priority, shard, max_retry, next_run_at, metadata, owner, parent_id,
                           created_at, updated_at)
select unhex(j.uid), j.cmd_type, j.biz_key, j.unique_key, j.unique_scope, j.payload, j.payload_version,
       j.priority, j.shard, j.max_retry,
       coalesce(timestamp'1970-01-01 00:00:00' + interval j.due_at microsecond,
                utc_timestamp(6) + interval least(j.due_in, timestampdiff(microsecond, utc_timestamp(6), timestamp'9999-12-31 23:59:59.999999')) microsecond),
       j.metadata, j.owner, j.parent_id, utc_timestamp(6), utc_timestamp(6)
from json_table(?, '$[*]' columns (
         uid char(32) character set ascii path '$[0]',
         cmd_type varchar(64) character set ascii path '$[1]',
         biz_key varchar(128) path '$[2]',
         unique_key varchar(128) path '$[3]',
         unique_scope smallint path '$[4]',
         payload longtext path '$[5]',
         payload_version int path '$[6]',
         priority smallint path '$[7]',
         shard smallint path '$[8]',
         max_retry int path '$[9]',
         due_at bigint path '$[10]',
         due_in bigint path '$[11]',
         metadata longtext path '$[12]',
         owner varchar(64) path '$[13]',
         parent_id bigint path '$[14]')) j
