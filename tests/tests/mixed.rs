//! One runtime on databases of different kinds, each in both places.

use asynccmd_tests::both;
use asynccmd_tests::harness::{Back as _, OnMysql, OnPostgres, OnSqlite};

macro_rules! mixed {
    ($($name:ident: $one:ty, $two:ty;)*) => {
        $(mod $name {
            use super::*;

            mixed!(@ $one, $two:
                commands_of_both_run,
                a_pool_bounds_both_together,
                both_get_a_fair_part,
                one_that_is_away_holds_up_no_other,
                what_a_command_does_stays_in_its_database,
                immediate_commands_start_in_each,
                a_shutdown_gives_back_in_each,
            );
        })*
    };
    (@ $one:ty, $two:ty: $($case:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            both::$case(<$one>::create().await, <$two>::create().await).await;
        })*
    };
}

mixed! {
    postgres_and_sqlite: OnPostgres, OnSqlite;
    sqlite_and_mysql: OnSqlite, OnMysql;
    mysql_and_postgres: OnMysql, OnPostgres;
}
