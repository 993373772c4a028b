-- Which migrations this database has had. The row of version 0 is named by the database's random
-- identity: it tells whether two connections are on the same database. It is also what a migration
-- locks.
create table if not exists async_command_migration (
    version bigint      not null primary key,
    name    varchar(64) character set ascii collate ascii_bin not null,
    at      datetime(6) not null
) engine = InnoDB;
insert into async_command_migration (version, name, at)
    values (0, left(sha2(concat(uuid(), rand()), 256), 32), utc_timestamp(6))
    on duplicate key update version = version;
