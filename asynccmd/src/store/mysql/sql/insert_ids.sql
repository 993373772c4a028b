-- The numbers that a statement's rows got. The first is known, but not that the others follow it
-- (`innodb_autoinc_lock_mode` 2, Galera): the caller knows its own by their uid, which nothing indexes.
-- the first number, how many
select id, uid from async_command where id >= ? order by id limit ?
