-- Whether the server is a node of a Galera cluster; a MySQL has no such variable.
show global variables like 'wsrep_on'
