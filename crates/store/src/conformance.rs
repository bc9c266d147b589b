//! The suite that every backend must pass.
//!
//! A backend implements [`Backend`] for its tests and calls
//! [`conformance_tests!`](crate::conformance_tests), which creates one `#[test]` per case.

mod model;
mod support;

pub mod cases;

use std::sync::Arc;

use crate::Store;

pub use model::Model;
pub use support::{Random, block_on, commit, entries};

/// Opens stores for one test case.
pub trait Backend: Send + Sync {
    /// Opens the store, which is empty the first time. The store opened before has been closed and
    /// dropped. A backend that [survives reopening](Backend::survives_reopening) keeps its content.
    fn open(&self) -> Arc<dyn Store>;

    /// Whether closing and opening again keeps the content.
    fn survives_reopening(&self) -> bool;

    /// A second store on the data of the open one, as another process would have it; `None` if only
    /// one store can be open.
    fn open_beside(&self) -> Option<Arc<dyn Store>> {
        None
    }
}

/// One `#[test]` per conformance case. The argument is an expression that creates a fresh
/// [`Backend`].
#[macro_export]
macro_rules! conformance_tests {
    ($backend:expr) => {
        $crate::conformance_tests! { @each $backend;
            opens_empty
            scans_in_key_order
            scans_only_its_range
            scans_prefixes
            scans_stop_when_told
            keeps_binary_keys_and_empty_values
            keeps_the_empty_key
            keeps_large_values
            scans_then_gets
            gets_many_in_the_order_asked
            reads_one_state
            snapshots_do_not_change
            reads_follow_acknowledged_writes
            applies_a_batch_in_order
            hands_guards_then_keys_to_the_decision
            abort_writes_nothing
            typed_outcomes_come_back
            delete_range_deletes_its_range_only
            delete_range_is_seen_by_later_decisions
            a_put_behind_a_deleted_range_stays
            batches_are_atomic_under_load
            increments_are_not_lost
            decisions_on_many_keys_see_writes_in_flight
            decisions_see_writes_in_flight
            aborts_wait_for_what_they_read
            transfers_keep_the_total
            overlapping_write_sets_do_not_deadlock
            guard_changes_exclude_guarded_writes
            guards_are_shared
            absence_is_not_skewed
            decisions_made_again_start_afresh
            stores_on_the_same_data_lose_no_update
            stores_on_the_same_data_see_each_other
            appends_are_numbered_from_one
            appends_follow_the_commit_order
            stamps_never_descend
            stamps_of_a_clock_rise_with_the_commit_order
            a_batch_has_one_stamp
            clocks_survive_reopening
            an_advanced_clock_divides_commits
            forgotten_clocks_start_anew
            dropped_logs_start_anew
            log_ends_can_be_set_and_listed
            numbering_goes_on_after_trimming
            counters_add_up
            counters_lose_nothing_under_load
            counters_mix_with_other_mutations
            adding_to_something_else_fails_alone
            dropped_writes_leave_nothing_half_done
            a_closed_store_refuses
            closing_finishes_accepted_writes
            reopening_keeps_everything
            statistics_count_commits
            a_seal_comes_and_goes
            copies_are_equal
            reclaiming_changes_nothing_visible
            random_operations_match_the_model
        }
    };
    (@each $backend:expr; $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                $crate::conformance::cases::$case(&$backend);
            }
        )*
    };
}
