-- Which migrations this database has had. The row of version 0 is named by the database's random
-- identity: it tells whether two connections are on the same database.
create table if not exists async_command_migration (
    version bigint         primary key,
    name    text           not null,
    at      timestamptz(6) not null
);
insert into async_command_migration (version, name, at)
    values (0, replace(gen_random_uuid()::text, '-', ''), statement_timestamp())
    on conflict (version) do nothing;
