//! Every case on SQLite.

asynccmd_tests::conformance!(asynccmd_tests::harness::OnSqlite);
