-- The queue, and what it needs beside it. Times are UTC, in `datetime`, which no session's time zone
-- changes. Every statement may be repeated: DDL commits by itself, so a migration can end half way.
-- The checks refuse states that the state machine does not know.
--
-- MySQL and MariaDB have different names for the collation that compares bytes and does not pad, so
-- that `A`, `a` and `A` with a space are three keys: the comments below hide from each the other's
-- (MariaDB passes over `/*!` with versions of MySQL from 5.7 on).
--
-- There are no partial indexes here. The generated columns do their work: null in all rows that an
-- index is not about, so that a row which is neither waiting nor dead is written to none of them again.

create table if not exists async_command (
    id              bigint       not null auto_increment primary key,
    uid             binary(16)   not null,
    cmd_type        varchar(64)  character set ascii collate ascii_bin not null,
    biz_key         varchar(128) character set utf8mb4 collate /*!80017 utf8mb4_0900_bin */ /*M! utf8mb4_nopad_bin */ not null default '',
    unique_key      varchar(128) character set utf8mb4 collate /*!80017 utf8mb4_0900_bin */ /*M! utf8mb4_nopad_bin */,
    unique_scope    smallint,      -- 1: until finished, 2: until started
    status          varchar(16)  character set ascii collate ascii_bin not null default 'PENDING',
    priority        smallint     not null default 0,
    shard           smallint     not null default 0,
    max_retry       int          not null,
    retry_count     int          not null default 0,
    crash_count     int          not null default 0,
    run_no          int          not null default 0,
    next_run_at     datetime(6)  not null,
    claim_token     binary(16),
    claimed_by      bigint,
    created_at      datetime(6)  not null,
    updated_at      datetime(6)  not null,
    finished_at     datetime(6),
    parent_id       bigint,
    compensation    bigint,
    payload_version int          not null default 1,
    -- The type, while PENDING.
    due_type        varchar(64)  character set ascii collate ascii_bin
                    generated always as (case when status = 'PENDING' then cmd_type end) stored,
    -- Whether a holder died: a flag, so that a further death moves no index entry.
    suspect         boolean      generated always as (crash_count > 0) stored,
    -- 1 while the command is live.
    unique_live     boolean      generated always as (case when status = 'PENDING' or (status = 'RUNNING' and unique_scope = 1)
                                                           then 1 end) stored,
    -- When it ended, if it is DEAD.
    dead_at         datetime(6)  generated always as (case when status = 'DEAD' then finished_at end) stored,
    owner           varchar(64),
    kill_reason     varchar(200),
    last_error      varchar(500),
    progress        longtext,
    metadata        longtext,
    payload         longtext     not null,
    result          longtext,
    constraint async_command_type check (cmd_type <> ''),
    constraint async_command_status check (status in ('PENDING', 'RUNNING', 'SUCCESS', 'DEAD', 'KILLED')),
    constraint async_command_priority check (priority between -2 and 2),
    constraint async_command_shard check (shard between 0 and 63),
    constraint async_command_scope check (unique_scope in (1, 2)),
    constraint async_command_key check ((unique_key is null) = (unique_scope is null)),
    constraint async_command_counts check (max_retry between 1 and 65535 and retry_count >= 0 and crash_count >= 0 and run_no >= 0),
    constraint async_command_token check ((status = 'RUNNING') = (claim_token is not null)),
    constraint async_command_holder check ((status = 'RUNNING') = (claimed_by is not null)),
    constraint async_command_finished check ((status in ('SUCCESS', 'DEAD', 'KILLED')) = (finished_at is not null)),
    -- Claims, of rows that saw a holder die too: one range a type and level. Every index ends with the
    -- row's number by itself.
    key async_command_due (due_type, suspect, priority, next_run_at),
    -- Uniqueness, in live states only: any number of rows are null in the last column. An ended command
    -- stays beside its key: a duplicate's insert locks the gap before the live one, and if all ended ones
    -- were null in the key too, they would all have to pass through the gap before the first.
    unique key async_command_unique (cmd_type, unique_key, unique_live),
    -- What a business key has been through; cancel and reschedule.
    key async_command_trace (cmd_type, biz_key),
    -- Dead letters.
    key async_command_dead (dead_at)
) engine = InnoDB, row_format = dynamic, character set = utf8mb4, collate = utf8mb4_bin;

-- One row is the lease of all that an instance holds.
create table if not exists async_command_instance (
    id           bigint        not null primary key,
    name         varchar(128)  not null,
    started_at   datetime(6)   not null,
    heartbeat_at datetime(6)   not null,
    meta         varchar(1000) not null default '{}'
) engine = InnoDB, row_format = dynamic, character set = utf8mb4, collate = utf8mb4_bin;

-- The receipt of a claim round: who holds which rows. `closing`: the instance was told to stop and
-- left running code behind, so that what it holds did not crash.
create table if not exists async_command_claim (
    token    binary(16)  not null primary key,
    instance bigint      not null,
    ids      longtext    not null,
    at       datetime(6) not null,
    closing  boolean     not null default 0,
    key async_command_claim_instance (instance)
) engine = InnoDB, row_format = dynamic, character set = utf8mb4, collate = utf8mb4_bin;

-- Failed attempts; a claim of a command fails once.
create table if not exists async_command_failure (
    command_id bigint      not null,
    run_no     int         not null,
    kind       varchar(32) character set ascii collate ascii_bin not null,
    at         datetime(6) not null,
    instance   bigint,
    error      longtext    not null,
    primary key (command_id, run_no)
) engine = InnoDB, row_format = dynamic, character set = utf8mb4, collate = utf8mb4_bin;
