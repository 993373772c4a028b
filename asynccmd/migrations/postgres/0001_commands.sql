-- The queue, and what it needs beside it. Times are the server's.
-- The checks refuse states that the state machine does not know. Keys compare byte by byte
-- (`collate "C"`), whatever the database's language: no two of them are equal by accident, and an
-- upgrade of the system's collations cannot break their indexes. Columns of fixed width stand first:
-- they are found without reading what stands before them.

create table async_command (
    id              bigint         generated always as identity primary key,
    next_run_at     timestamptz(6) not null,
    created_at      timestamptz(6) not null,
    updated_at      timestamptz(6) not null,
    finished_at     timestamptz(6),
    claimed_by      bigint,
    parent_id       bigint,
    compensation    bigint,
    uid             uuid           not null,
    claim_token     uuid,
    max_retry       integer        not null check (max_retry between 1 and 65535),
    retry_count     integer        not null default 0 check (retry_count >= 0),
    crash_count     integer        not null default 0 check (crash_count >= 0),
    run_no          integer        not null default 0 check (run_no >= 0),
    payload_version integer        not null default 1,
    priority        smallint       not null default 0 check (priority between -2 and 2),
    shard           smallint       not null default 0 check (shard between 0 and 63),
    unique_scope    smallint       check (unique_scope in (1, 2)),   -- 1: until finished, 2: until started
    status          varchar(16)    collate "C" not null default 'PENDING'
                    check (status in ('PENDING', 'RUNNING', 'SUCCESS', 'DEAD', 'KILLED')),
    cmd_type        varchar(64)    collate "C" not null check (cmd_type <> ''),
    biz_key         varchar(128)   collate "C" not null default '',
    unique_key      varchar(128)   collate "C",
    owner           varchar(64),
    kill_reason     varchar(200),
    last_error      varchar(500),
    progress        text,
    metadata        text,
    payload         text           not null,
    result          text,
    check ((unique_key is null) = (unique_scope is null)),
    check ((status = 'RUNNING') = (claim_token is not null)),
    check ((status = 'RUNNING') = (claimed_by is not null)),
    check ((status in ('SUCCESS', 'DEAD', 'KILLED')) = (finished_at is not null))
);

-- Claims: one range a type and level.
create index async_command_due on async_command (cmd_type, priority, next_run_at, id)
    where status = 'PENDING' and crash_count = 0;
-- Claims of rows that saw a holder die.
create index async_command_suspect on async_command (cmd_type, next_run_at)
    where status = 'PENDING' and crash_count > 0;
-- Uniqueness, in live states only.
create unique index async_command_unique on async_command (cmd_type, unique_key)
    where unique_key is not null
      and (status = 'PENDING' or (status = 'RUNNING' and unique_scope = 1));
-- What a business key has been through; cancel and reschedule.
create index async_command_trace on async_command (cmd_type, biz_key)
    where biz_key <> '';
-- Dead letters.
create index async_command_dead on async_command (finished_at)
    where status = 'DEAD';

-- One row is the lease of all that an instance holds. `meta` is JSON; `closing`: the instance was told
-- to stop and left running code behind, so that what it holds did not crash.
create table async_command_instance (
    id           bigint         primary key,
    started_at   timestamptz(6) not null,
    heartbeat_at timestamptz(6) not null,
    name         text           not null,
    meta         jsonb          not null default '{}'
);

-- The receipt of a claim round: who holds which rows. It inherits `closing`.
create table async_command_claim (
    token    uuid           primary key,
    instance bigint         not null,
    at       timestamptz(6) not null,
    closing  smallint       not null default 0 check (closing in (0, 1)),
    ids      bigint[]       not null
);
create index async_command_claim_instance on async_command_claim (instance);

-- Failed attempts; a claim of a command fails once.
create table async_command_failure (
    command_id bigint         not null,
    run_no     integer        not null,
    kind       text           not null,
    at         timestamptz(6) not null,
    instance   bigint,
    error      text           not null,
    primary key (command_id, run_no)
);
