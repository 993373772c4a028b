-- Dead letters, counted in their own index.
select count(*) from async_command where dead_at is not null
