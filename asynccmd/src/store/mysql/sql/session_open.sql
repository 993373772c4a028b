-- How long a transaction may stay open without a statement before the server ends it, and its connection.
-- MySQL knows no such bound but that of every idle connection.
-- seconds
set session /*M! idle_transaction_timeout */ /*!80001 wait_timeout */ = ?
