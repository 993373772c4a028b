-- Dead letters, counted in their own index.
select count(*) from async_command where status = 'DEAD'
