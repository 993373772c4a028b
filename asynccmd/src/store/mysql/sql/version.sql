-- Who the server is.
select version()
