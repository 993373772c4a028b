//! Every case on PostgreSQL, and what PostgreSQL alone has.

asynccmd_tests::conformance!(asynccmd_tests::harness::OnPostgres);
