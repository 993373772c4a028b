-- The queue, and what it needs beside it. Times are microseconds since 1970.
-- `strict` refuses values of a wrong type, the checks refuse states that the state machine does not
-- know. Long texts stand last: reading what stands before them needs no overflow page.

create table async_command (
    id              integer primary key autoincrement,
    uid             blob    not null check (length(uid) = 16),
    cmd_type        text    not null check (cmd_type <> ''),
    biz_key         text    not null default '',
    unique_key      text,
    unique_scope    integer check (unique_scope in (1, 2)),          -- 1: until finished, 2: until started
    status          text    not null default 'PENDING'
                    check (status in ('PENDING', 'RUNNING', 'SUCCESS', 'DEAD', 'KILLED')),
    priority        integer not null default 0 check (priority between -2 and 2),
    shard           integer not null default 0 check (shard between 0 and 63),
    max_retry       integer not null check (max_retry between 1 and 65535),
    retry_count     integer not null default 0 check (retry_count between 0 and 2147483647),
    crash_count     integer not null default 0 check (crash_count between 0 and 2147483647),
    run_no          integer not null default 0 check (run_no between 0 and 2147483647),
    next_run_at     integer not null,
    claim_token     blob    check (length(claim_token) = 16),
    claimed_by      integer,
    created_at      integer not null,
    updated_at      integer not null,
    finished_at     integer,
    parent_id       integer,
    compensation    integer,
    payload_version integer not null default 1,
    owner           text,
    kill_reason     text,
    last_error      text,
    progress        text,
    metadata        text,
    payload         text    not null,
    result          text,
    check ((unique_key is null) = (unique_scope is null)),
    check ((status = 'RUNNING') = (claim_token is not null)),
    check ((status = 'RUNNING') = (claimed_by is not null)),
    check ((status in ('SUCCESS', 'DEAD', 'KILLED')) = (finished_at is not null))
) strict;

-- Every index ends with the row's number by itself.
-- Claims: one range a type and level.
create index async_command_due on async_command (cmd_type, priority, next_run_at)
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

-- One row is the lease of all that an instance holds.
create table async_command_instance (
    id           integer primary key,
    name         text    not null,
    started_at   integer not null,
    heartbeat_at integer not null,
    meta         text    not null default '{}'
) strict;

-- The receipt of a claim round: who holds which rows. `closing`: the instance was told to stop and
-- left running code behind, so that what it holds did not crash.
create table async_command_claim (
    token    blob    primary key check (length(token) = 16),
    instance integer not null,
    ids      text    not null,
    at       integer not null,
    closing  integer not null default 0 check (closing in (0, 1))
) without rowid, strict;
create index async_command_claim_instance on async_command_claim (instance);

-- Failed attempts; a claim of a command fails once.
create table async_command_failure (
    command_id integer not null,
    run_no     integer not null,
    kind       text    not null,
    at         integer not null,
    instance   integer,
    error      text    not null,
    primary key (command_id, run_no)
) without rowid, strict;
