//! The list of cases that hold on every back end.

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
            also {
                commands_of_both_run,
                a_pool_bounds_both_together,
                a_type_limit_bounds_both_together,
                both_get_a_fair_part,
                both_get_a_fair_part_of_quick_work,
                both_take_turns_at_one_worker,
                one_that_is_away_holds_up_no_other,
                ready_commands_go_back_where_they_are_from,
                what_a_command_does_stays_in_its_database,
                immediate_commands_start_in_each,
                a_start_is_on_all_or_none,
                a_shutdown_gives_back_in_each,
            }
            submit {
                a_rolled_back_command_never_existed,
                a_dropped_transaction_never_existed,
                nothing_runs_before_the_commit_and_everything_after_it,
                an_enlisted_transaction_starts_its_commands_at_its_commit,
                an_autocommit_submit_runs_at_once,
                submits_of_one_moment_are_each_told_of_their_own_row,
                a_late_commit_of_a_lower_id_loses_nothing,
                a_bare_transaction_is_found_by_the_next_poll,
                a_bare_connection_is_found_by_the_next_poll,
                a_client_without_a_runtime_is_found_by_the_next_poll,
                an_alias_routes_rows_of_the_old_name,
                a_begin_that_is_given_up_swallows_nothing,
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
            compensation {
                a_dead_command_is_compensated_for_in_the_transaction_of_its_death,
                a_death_of_whatever_kind_is_compensated_for,
                who_does_not_die_of_a_failure_is_not_compensated_for,
                an_older_payload_is_compensated_for_as_it_was_upgraded,
                a_compensation_that_cannot_be_made_delays_no_death,
                a_compensation_that_the_database_refuses_delays_no_death,
                a_long_payload_is_compensated_for,
                a_compensation_that_takes_instances_down_has_an_end,
                a_retry_waits_for_the_compensation,
                a_retry_waits_for_the_last_of_a_chain,
                racing_retries_run_one_of_the_two,
            }
            retention {
                a_retention_of_zero_deletes_a_success_at_once,
                a_success_that_cannot_be_deleted_is_kept,
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
                a_plain_handler_that_its_hook_gives_up_is_waited_for,
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
                a_claim_without_a_reply_delays_no_shutdown,
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
                a_suspect_waits_for_no_backlog,
                a_living_instance_keeps_its_commands,
            }
            takeover {
                a_stuck_instance_gives_its_rows_up,
                an_outage_longer_than_the_stall_timeout_kills_nobody,
            }
            stale {
                a_stale_attempt_changes_nothing_whatever_its_end,
            }
            locked {
                a_locked_row_delays_no_other_end,
                a_locked_row_that_goes_delays_no_other,
                a_locked_row_delays_no_other_start,
                a_locked_row_delays_no_others_recovery,
                locked_receipts_hide_no_other,
                dead_instances_that_are_locked_delay_no_heartbeat,
                a_locked_row_delays_no_other_kill,
            }
            races {
                racing_transactions_make_one_row_at_every_isolation,
                a_waiting_duplicate_holds_up_nobody_else,
            }
            deploy {
                a_rolling_deploy_burns_no_attempt,
                newer_tables_refuse_the_next_start_only,
            }
            texts {
                every_column_takes_the_widest_characters,
                a_payload_of_five_megabytes_comes_back_as_it_was,
                an_error_is_cut_between_characters_at_every_offset,
                a_reason_ends_between_characters,
            }
            zones {
                sessions_in_another_time_zone_agree_on_every_moment,
            }
            fleet {
                two_instances_share_the_work_evenly,
                four_instances_share_the_work_evenly,
                eight_instances_share_the_work_evenly,
            }
            storm {
                a_storm_loses_and_doubles_nothing,
            }
            bulk {
                a_large_batch_answers_in_its_order,
                a_large_batch_honours_unique_keys,
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
