//! Every case on MySQL or MariaDB, twice: by each of the two ways to claim.

asynccmd_tests::conformance!(asynccmd_tests::harness::OnMysql);

mod in_two_steps {
    asynccmd_tests::conformance!(asynccmd_tests::harness::OnMysqlInTwoSteps);
}
