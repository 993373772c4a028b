-- Tells whoever listens. $1 channel, $2 message
select pg_notify($1, $2)
