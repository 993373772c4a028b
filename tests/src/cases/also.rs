//! One runtime on two databases of one kind.

use crate::both;
use crate::harness::Back;

macro_rules! of_one_kind {
    ($($case:ident),* $(,)?) => {
        $(
            /// Its body in [`both`], on two databases of one kind.
            pub async fn $case<B: Back>(back: B) {
                both::$case(back, B::create().await).await;
            }
        )*
    };
}

of_one_kind! {
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
    a_shutdown_gives_back_in_each,
}

/// The same for the start, which also has one that was never migrated.
pub async fn a_start_is_on_all_or_none<B: Back>(back: B) {
    both::a_start_is_on_all_or_none(back, B::create().await, B::empty().await).await;
}
