//! What needs processes of its own and real signals: workers on one database, of each kind.
//!
//! `lease`: who holds a row, and what takes it away. `death`: processes that die, alone or all at once.
//! `fleet`: many of them, of which one dies every second. `signals`: shutdown on order. `start`: eight
//! processes at one empty database. `clock`: clocks that are an hour off. `galera`: a cluster that loses a
//! node. At the end of each case no row is RUNNING without a receipt, and no receipt without a row.

#[path = "crash/clock.rs"]
mod clock;
#[path = "crash/death.rs"]
mod death;
#[path = "crash/fleet.rs"]
mod fleet;
#[path = "crash/galera.rs"]
mod galera;
#[path = "crash/lease.rs"]
mod lease;
#[path = "crash/signals.rs"]
mod signals;
#[path = "crash/site.rs"]
mod site;
#[path = "crash/start.rs"]
mod start;

/// A test of each case for each kind of database.
macro_rules! crash {
    ($($kind:ident: $back:ident),* $(,)?) => {
        $(mod $kind {
            crash! { @ $back
                lease {
                    a_stopped_process_changes_nothing_once_its_lease_is_gone,
                    a_claim_without_a_reply_is_given_back_uncounted,
                    a_row_locked_at_the_last_finish_of_its_round_is_recovered,
                    a_long_write_lock_kills_nobody,
                    an_instance_without_its_row_goes_on_under_another_id,
                }
                death {
                    a_handler_that_aborts_ends_dead_and_takes_nobody_along,
                    a_handler_that_aborts_is_compensated_for_once_it_is_dead,
                    a_cluster_that_died_whole_is_recovered_by_the_next_start,
                }
                fleet {
                    a_death_every_second_loses_nothing_and_doubles_only_what_ran,
                }
                signals {
                    sigterm_finishes_what_runs_and_gives_back_what_does_not,
                    sigint_finishes_what_runs_and_gives_back_what_does_not,
                    code_that_blocks_past_the_grace_is_recovered_uncounted,
                    a_second_signal_ends_at_once,
                }
                start {
                    eight_processes_migrate_an_empty_database_at_once,
                }
            }
        })*
    };
    (@ $back:ident $($file:ident { $($case:ident),* $(,)? })*) => {
        $(mod $file {
            $(#[tokio::test]
            async fn $case() {
                crate::$file::$case::<asynccmd_tests::harness::$back>().await;
            })*
        })*
    };
}

crash! { mysql: OnMysql, postgres: OnPostgres, sqlite: OnSqlite }

/// What takes more than the default run has: `tests/run --long`.
mod long {
    use asynccmd_tests::harness::{OnMysql, OnPostgres};

    #[tokio::test]
    #[ignore = "long, and needs libfaketime: tests/run --long"]
    async fn clocks_an_hour_off_change_nothing_on_mysql() {
        crate::clock::clocks_an_hour_off_change_nothing::<OnMysql>().await;
    }

    #[tokio::test]
    #[ignore = "long, and needs libfaketime: tests/run --long"]
    async fn clocks_an_hour_off_change_nothing_on_postgres() {
        crate::clock::clocks_an_hour_off_change_nothing::<OnPostgres>().await;
    }

    #[tokio::test]
    #[ignore = "long, and needs Galera: tests/run --long"]
    async fn a_cluster_that_loses_a_node_loses_no_command() {
        crate::galera::a_cluster_that_loses_a_node_loses_no_command().await;
    }

    #[tokio::test]
    #[ignore = "long, and needs Galera: tests/run --long"]
    async fn a_runtimes_reads_are_not_behind_another_nodes_commit() {
        crate::galera::a_runtimes_reads_are_not_behind_another_nodes_commit().await;
    }
}
