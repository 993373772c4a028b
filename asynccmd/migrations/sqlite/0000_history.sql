-- Which migrations this database has had. The row of version 0 is named by the database's random
-- identity: it tells whether two connections are on the same database.
create table if not exists async_command_migration (
    version integer primary key,
    name    text    not null,
    at      integer not null
) strict;
insert into async_command_migration (version, name, at)
    values (0, lower(hex(randomblob(16))), cast(unixepoch('subsec') * 1000000 as integer))
    on conflict (version) do nothing;
