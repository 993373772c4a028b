-- The file of the main database: empty for one in memory.
select coalesce(file, '') from pragma_database_list where name = 'main'
