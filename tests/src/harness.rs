//! What a case needs of a back end, and a log of what handlers did.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use asynccmd::{
    Backend, Client, CommandId, CommandRow, Context, Database, Registry, Runtime, RuntimeBuilder,
};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Sqlite, SqliteConnection, SqlitePool};
use tempfile::TempDir;
use tokio::sync::watch;

/// A database of a test's own, of one kind.
pub trait Back: Sized + Send + Sync + 'static {
    /// The kind.
    type DB: Backend;

    /// One transaction writes at a time, and the next one waits for it.
    const ONE_WRITER: bool;

    /// A new, migrated database, with a table of the business beside the commands:
    /// `effect (command, note)`.
    fn create() -> impl Future<Output = Self> + Send;

    /// Its pool, as a user would make it.
    fn pool(&self) -> &sqlx::Pool<Self::DB>;

    /// The same for asynccmd.
    fn database(&self) -> Database;

    /// A further pool on the same database, with so many connections.
    fn pool_of(&self, connections: u32) -> impl Future<Output = sqlx::Pool<Self::DB>> + Send;

    /// This pool for asynccmd.
    fn database_of(pool: &sqlx::Pool<Self::DB>) -> Database;

    /// Runs a statement of the test's, in the dialect that all back ends share.
    fn execute(&self, sql: impl Into<String> + Send) -> impl Future<Output = u64> + Send;

    /// The same past the table's own checks, as by a person who is sure of it.
    fn execute_unchecked(&self, sql: impl Into<String> + Send) -> impl Future<Output = u64> + Send;

    /// The same on a connection, usually within a transaction.
    fn execute_on(
        conn: &mut <Self::DB as sqlx::Database>::Connection,
        sql: impl Into<String> + Send,
    ) -> impl Future<Output = u64> + Send;

    /// Reads one number.
    fn number(&self, sql: impl Into<String> + Send) -> impl Future<Output = i64> + Send;

    /// A builder for a runtime with these commands, in a hurry: `stall_timeout` of two seconds.
    fn runtime(&self, registry: Registry) -> RuntimeBuilder {
        Runtime::builder(self.database()).registry(registry).stall_timeout(Duration::from_secs(2))
    }

    /// A transaction beside which no write of a runtime gets through.
    fn hold_everything(&self) -> impl Future<Output = sqlx::Transaction<'static, Self::DB>> + Send;

    /// Puts PENDING commands into the hands of an instance that has died without anybody noticing
    /// yet: RUNNING, with a receipt, and a heartbeat of long ago. Returns the instance's number.
    fn hold_by_a_dead_instance(&self, ids: &[CommandId]) -> impl Future<Output = i64> + Send;

    /// No RUNNING row without a receipt, no receipt without a RUNNING row.
    fn assert_receipts_match_rows(&self) -> impl Future<Output = ()> + Send;
}

/// SQLite, in a file of a temporary folder.
pub struct OnSqlite {
    pool: SqlitePool,
    /// Removed with it.
    pub dir: TempDir,
}

impl OnSqlite {
    /// The connect options for `file`.
    pub fn options(file: &std::path::Path) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_secs(20))
    }
}

impl Back for OnSqlite {
    type DB = Sqlite;

    const ONE_WRITER: bool = true;

    async fn create() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Self::options(&dir.path().join("test.db"));
        let pool = SqlitePoolOptions::new().max_connections(8).connect_with(options).await.unwrap();
        asynccmd::migrate(&pool).await.unwrap();
        let back = Self { pool, dir };
        back.execute("create table effect (command bigint not null, note varchar(200) not null)")
            .await;
        back
    }

    fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    fn database(&self) -> Database {
        (&self.pool).into()
    }

    async fn pool_of(&self, connections: u32) -> SqlitePool {
        let options = SqliteConnectOptions::clone(&self.pool.connect_options());
        SqlitePoolOptions::new().max_connections(connections).connect_with(options).await.unwrap()
    }

    fn database_of(pool: &SqlitePool) -> Database {
        pool.into()
    }

    async fn execute(&self, sql: impl Into<String> + Send) -> u64 {
        Self::execute_on(&mut *self.pool.acquire().await.unwrap(), sql).await
    }

    async fn execute_unchecked(&self, sql: impl Into<String> + Send) -> u64 {
        let mut conn = self.pool.acquire().await.unwrap();
        Self::execute_on(&mut conn, "pragma ignore_check_constraints = on").await;
        let changed = Self::execute_on(&mut conn, sql).await;
        Self::execute_on(&mut conn, "pragma ignore_check_constraints = off").await;
        changed
    }

    async fn execute_on(conn: &mut SqliteConnection, sql: impl Into<String> + Send) -> u64 {
        sqlx::query(AssertSqlSafe(sql.into())).execute(conn).await.unwrap().rows_affected()
    }

    async fn number(&self, sql: impl Into<String> + Send) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.into())).fetch_one(&self.pool).await.unwrap()
    }

    async fn hold_everything(&self) -> sqlx::Transaction<'static, Sqlite> {
        self.pool.begin_with("begin immediate").await.unwrap()
    }

    async fn hold_by_a_dead_instance(&self, ids: &[CommandId]) -> i64 {
        let (instance, token) =
            (fastrand::i64(1..i64::MAX), format!("{:032x}", fastrand::u128(..)));
        let ids = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        for sql in [
            format!(
                "insert into async_command_instance (id, name, started_at, heartbeat_at) values ({instance}, 'dead', 0, 0)"
            ),
            format!(
                "insert into async_command_claim (token, instance, ids, at) values (x'{token}', {instance}, '[{ids}]', 0)"
            ),
            format!(
                "update async_command set status = 'RUNNING', run_no = run_no + 1, claim_token = x'{token}', claimed_by = {instance} where status = 'PENDING' and id in ({ids})"
            ),
        ] {
            self.execute(sql).await;
        }
        instance
    }

    async fn assert_receipts_match_rows(&self) {
        let naked: Vec<i64> = sqlx::query_scalar(
            "select id from async_command c where status = 'RUNNING' and not exists (
                 select 1 from async_command_claim r, json_each(r.ids) j
                 where r.token = c.claim_token and j.value = c.id)",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap();
        assert!(naked.is_empty(), "RUNNING without a receipt: {naked:?}");
        let idle: Vec<String> = sqlx::query_scalar(
            "select hex(token) || ' ' || ids from async_command_claim r where not exists (
                 select 1 from json_each(r.ids) j join async_command c on c.id = j.value
                 where c.status = 'RUNNING' and c.claim_token = r.token)",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap();
        assert!(idle.is_empty(), "receipts without a RUNNING row: {idle:?}");
    }
}

/// What handlers did, in order; a `#[state]` value.
#[derive(Clone)]
pub struct Log {
    entries: Arc<Mutex<Vec<Entry>>>,
    changed: watch::Sender<usize>,
}

/// One call of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The command.
    pub id: CommandId,
    /// Its attempt.
    pub attempt: u32,
    /// What it said.
    pub text: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { entries: Arc::default(), changed: watch::Sender::new(0) }
    }
}

impl Log {
    /// Notes a call.
    pub fn add(&self, ctx: &Context, text: &str) {
        let mut entries = self.entries.lock().unwrap();
        entries.push(Entry { id: ctx.id(), attempt: ctx.attempt(), text: text.to_owned() });
        self.changed.send_replace(entries.len());
    }

    /// The calls so far.
    pub fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }

    /// What the calls said.
    pub fn texts(&self) -> Vec<String> {
        self.entries().into_iter().map(|entry| entry.text).collect()
    }

    /// Waits until there are `count` calls.
    ///
    /// # Panics
    /// After [`DEADLINE`] without them.
    pub async fn until(&self, count: usize) {
        let mut changed = self.changed.subscribe();
        let reached = changed.wait_for(|entries| *entries >= count);
        if tokio::time::timeout(DEADLINE, reached).await.is_err() {
            panic!("after {DEADLINE:?} not {count} calls but {:?}", self.entries());
        }
    }
}

/// The longest that a case waits for anything.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Awaits something that has to come.
///
/// # Panics
/// If it does not within [`DEADLINE`].
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(done) => done,
        Err(_) => panic!("after {DEADLINE:?} still not: {what}"),
    }
}

/// A command's row.
pub async fn row(client: &Client, id: CommandId) -> CommandRow {
    client.admin().get(id).await.unwrap().row
}

/// Waits until a command's row is as wanted.
///
/// A database tells nobody of its changes, so it is asked again and again.
///
/// # Panics
/// After [`DEADLINE`], with the row.
pub async fn until_row(
    client: &Client,
    id: CommandId,
    wanted: impl Fn(&CommandRow) -> bool,
) -> CommandRow {
    let begin = std::time::Instant::now();
    let mut again = tokio::time::interval(Duration::from_millis(5));
    loop {
        again.tick().await;
        let row = row(client, id).await;
        if wanted(&row) {
            return row;
        }
        assert!(begin.elapsed() < DEADLINE, "after {DEADLINE:?} still not as wanted: {row:?}");
    }
}

/// Waits until a number read from the database is as wanted.
///
/// # Panics
/// After [`DEADLINE`], with the number.
pub async fn until_number<B: Back>(back: &B, sql: &str, wanted: i64) {
    let begin = std::time::Instant::now();
    let mut again = tokio::time::interval(Duration::from_millis(5));
    loop {
        again.tick().await;
        let number = back.number(sql).await;
        if number == wanted {
            return;
        }
        assert!(
            begin.elapsed() < DEADLINE,
            "after {DEADLINE:?} still {number}, not {wanted}: {sql}"
        );
    }
}

/// A test of each case for a back end.
#[macro_export]
macro_rules! conformance {
    ($back:ty) => {
        $crate::conformance!(@ $back,
            basics {
                a_committed_command_runs_once,
            }
            declared {
                a_publisher_needs_no_handler_and_misses_none,
                a_declared_command_starts_after_its_commit,
                a_declared_commands_retries_come_from_both_sides,
                require_and_a_second_handler_are_said_at_the_start,
                a_declaration_outlives_its_older_rows,
            }
            submit {
                a_rolled_back_command_never_existed,
                a_dropped_transaction_never_existed,
                nothing_runs_before_the_commit_and_everything_after_it,
                an_enlisted_transaction_starts_its_commands_at_its_commit,
                an_autocommit_submit_runs_at_once,
                a_late_commit_of_a_lower_id_loses_nothing,
                a_bare_transaction_is_found_by_the_next_poll,
                a_bare_connection_is_found_by_the_next_poll,
                a_client_without_a_runtime_is_found_by_the_next_poll,
                an_alias_routes_rows_of_the_old_name,
            }
            values {
                a_batch_answers_in_its_order,
                a_batch_with_a_refused_row_writes_nothing,
                the_options_of_a_submit_are_stored,
                a_refusal_names_value_and_limit_and_leaves_the_transaction_usable,
                any_text_is_a_payload,
                business_keys_are_byte_exact,
            }
            timing {
                a_delayed_command_waits_for_its_time,
                a_command_starts_when_it_is_due_and_not_at_the_next_poll,
                a_cancel_ends_pending_commands_only_and_with_its_transaction,
                a_reschedule_moves_pending_commands_only_and_with_its_transaction,
            }
            unique {
                a_unique_command_is_the_only_one_of_its_key_until_it_has_finished,
                a_unique_key_is_held_over_retries_and_free_after_the_death,
                an_until_started_key_is_free_once_the_command_runs,
                a_retry_whose_key_is_taken_again_is_superseded,
                a_submit_can_ask_for_uniqueness_itself,
                a_batch_honours_unique_keys_within_itself,
                a_rolled_back_winner_leaves_the_key_free,
                racing_submitters_make_one_row,
            }
            order {
                levels_order_the_commands_of_a_type,
                priorities_order_the_types_of_a_pool,
                scheduled_commands_run_one_after_another_in_claim_order,
            }
            outcomes {
                a_success_keeps_its_output,
                an_output_over_the_limit_is_not_stored_and_the_success_stands,
                a_failing_command_is_retried_until_it_is_dead_and_keeps_its_failures,
                the_submits_own_max_retry_counts,
                a_long_error_is_kept_in_full,
                a_snooze_counts_nothing,
                a_fatal_error_is_dead_at_once,
                a_cancel_by_the_handler_is_killed_with_its_reason,
                a_retry_in_waits_as_the_handler_says,
                a_timeout_is_counted_and_drops_the_code,
                a_context_tells_its_command_and_stores_the_progress,
            }
            retries {
                every_backoff_waits_as_declared,
                classify_judges_the_handlers_error,
                a_retry_waits_for_no_poll,
            }
            panics {
                a_panic_in_an_async_handler_is_a_failure,
                a_panic_in_a_plain_handler_is_a_failure,
                a_panic_in_a_cancelled_futures_drop_is_a_failure,
                a_panic_on_the_way_into_and_out_of_the_handler_is_a_failure,
                a_panic_in_the_backoff_falls_back_to_the_default,
                a_panic_in_a_hook_is_a_failure,
                a_panic_in_an_on_dead_hook_stops_nothing,
            }
            rows {
                an_undecodable_payload_among_nine_good_ones_harms_nobody,
                an_unknown_type_is_never_touched_and_named_by_health,
                a_row_in_an_impossible_state_is_left_alone,
                absurd_counts_and_times_stop_nobody,
                a_count_at_its_end_stops_nobody,
                a_row_that_cannot_be_read_stops_nobody,
            }
            versions {
                the_version_of_a_payload_is_stored,
                older_payloads_are_upgraded_on_their_way_to_the_handler,
                a_newer_payload_is_left_to_newer_binaries,
                a_failed_upgrade_leaves_the_row_for_a_fixed_deploy,
            }
            portable {
                a_mixed_batch_submits_each_box_as_its_command,
                a_refused_box_is_named_and_nothing_is_written,
                boxes_in_a_payload_are_submitted_with_its_success,
            }
            transfer {
                an_export_is_imported_as_it_was,
                exported_dead_letters_run_where_they_are_imported,
                older_lines_are_imported_by_aliases_and_upgrades,
                a_file_with_broken_lines_is_refused_by_their_numbers,
                unknown_types_are_skipped_on_request_only,
                rows_that_cannot_be_decoded_are_exported_too,
            }
            finish_in {
                an_end_in_the_handlers_transaction_stands_whatever_follows,
                an_end_that_is_rolled_back_never_happened,
                an_end_on_another_database_is_refused,
                an_end_of_a_requeued_command_is_refused,
                an_end_of_a_command_that_is_to_be_killed_is_refused,
                a_second_end_and_a_late_follow_up_are_refused,
                follow_ups_of_an_end_in_a_transaction_start_at_its_commit,
                an_end_in_a_transaction_deletes_what_nobody_keeps,
            }
            follow_ups {
                follow_ups_exist_exactly_if_the_attempt_succeeds,
                follow_ups_of_a_timed_out_attempt_never_existed,
                a_follow_up_starts_at_once_after_the_success,
                a_batch_of_follow_ups_honours_unique_keys,
            }
            retention {
                a_retention_of_zero_deletes_a_success_at_once,
                the_sweep_removes_ended_rows_past_their_retention,
            }
            operate {
                a_retry_starts_from_dead_only,
                a_requeue_starts_from_running_only,
                a_kill_starts_from_what_has_not_ended,
                a_requeued_attempt_is_fenced_and_told,
                a_second_attempt_waits_for_the_first_ones_code,
                a_retry_is_refused_while_its_key_is_taken,
                a_requeue_is_refused_while_its_key_is_taken,
                a_list_goes_by_pages_over_its_filters,
            }
            kill {
                a_kill_of_a_running_command_cancels_it,
                a_kill_that_nobody_announced_is_found_by_the_heartbeat,
                a_kill_of_blocking_code_is_written_when_it_returns,
                a_kill_wins_over_every_end,
                a_forced_kill_does_not_wait_for_the_code,
            }
            health {
                a_dead_letter_is_down_until_it_is_handled,
                missing_and_strange_tables_are_a_reason,
                a_busy_pool_is_no_reason,
                a_database_that_is_away_is_a_reason_and_costs_nothing,
                a_runtime_that_is_gone_is_not_ready,
                a_stuck_scheduler_is_a_reason_and_recovers,
                a_long_running_command_is_named,
            }
            pools {
                workers_bound_the_attempts_of_a_pool,
                slow_work_is_not_claimed_ahead,
                a_type_limit_bounds_one_type_within_its_pool,
                a_blocked_pool_delays_no_other,
                an_immediate_command_waits_for_no_poll,
                an_immediate_command_of_a_full_pool_stays_pending_until_there_is_room,
                handlers_that_each_take_a_connection_do_not_deadlock,
            }
            hooks {
                hooks_nest_in_their_order_and_see_every_end,
                a_hook_may_decide_in_the_handlers_place,
                on_dead_hooks_are_called_after_the_commit,
            }
            shutdown {
                an_idle_runtime_ends_and_leaves_no_trace,
                ready_commands_are_given_back_uncounted,
                attempts_end_within_the_grace,
                attempts_past_the_grace_are_cancelled_and_given_back,
                a_kill_is_delivered_during_the_grace,
                blocking_code_past_the_grace_keeps_its_row,
                a_shutdown_during_a_backoff_leaves_it,
                two_shutdowns_at_once_wait_for_the_same_end,
                a_dropped_runtime_shuts_down_in_the_background,
                a_shutdown_right_after_the_start_loses_and_counts_nothing,
            }
            start {
                two_handlers_of_a_type_are_refused_with_both_places,
                everything_that_is_missing_is_named_at_once,
                an_empty_registry_names_cause_and_cure,
                a_setting_out_of_range_is_refused,
                strange_tables_are_refused_with_the_cure,
                a_migration_can_be_repeated_by_many_at_once,
                the_runtimes_client_is_always_there,
                runtimes_beside_each_other_share_the_work,
            }
            lease {
                a_lost_lease_loses_no_command_and_starts_none_twice_at_once,
                a_recovered_attempt_is_told_and_changes_nothing,
                a_doubted_lease_starts_nothing_and_holds_again,
                a_lost_claim_reply_is_reconciled,
                a_row_taken_by_sql_fences_its_attempt,
                commands_of_a_dead_instance_are_recovered,
                deaths_end_a_command_after_max_retry,
                a_command_with_too_many_deaths_ends_without_a_start,
                suspects_run_one_at_a_time,
                a_living_instance_keeps_its_commands,
            }
        );
    };
    (@ $back:ty, $($file:ident { $($case:ident),* $(,)? })*) => {
        $(mod $file {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let back = <$back as $crate::harness::Back>::create().await;
                $crate::cases::$file::$case(back).await;
            })*
        })*
    };
}
