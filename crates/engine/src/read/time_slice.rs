//! A filter runs in time slices. The memory store never waits, so without them a costly filter would
//! block everything else on its thread for a whole page.

use zenobe_expression::{Condition, Cost};
use zenobe_store::yield_now;
use zenobe_value::ItemRef;

/// About a millisecond of a filter's work.
const STEPS_PER_SLICE: u64 = 2_000_000;

/// Measures a filter's work and decides when its time slice is over.
pub(super) struct TimeSlice {
    cost: Cost,
    steps_left: u64,
}

impl TimeSlice {
    pub fn new(filter: Option<&Condition>) -> TimeSlice {
        let cost = filter.map(Condition::cost).unwrap_or_default();
        TimeSlice { cost, steps_left: STEPS_PER_SLICE }
    }

    /// Whether the filter may take more than a time slice for this item alone.
    pub fn is_too_short_for(&self, item: ItemRef<'_>) -> bool {
        self.cost.of_item(item.size_bytes() as u64) > STEPS_PER_SLICE
    }

    /// Evaluates the whole filter in this time slice.
    pub fn evaluate(&mut self, filter: &Condition, item: ItemRef<'_>) -> bool {
        self.spend(self.cost, item);
        filter.evaluate(Some(item))
    }

    /// Evaluates the filter over as many time slices as necessary. Only the legacy parameters
    /// produce that many conditions, always joined at the top level.
    pub async fn evaluate_in_slices(&mut self, filter: &Condition, item: ItemRef<'_>) -> bool {
        let (conditions, decisive) = match filter {
            Condition::And(conditions) => (conditions, false),
            Condition::Or(conditions) => (conditions, true),
            _ => return self.evaluate(filter, item),
        };
        for condition in conditions {
            self.yield_if_over().await;
            self.spend(condition.cost(), item);
            if condition.evaluate(Some(item)) == decisive {
                return decisive;
            }
        }
        !decisive
    }

    fn spend(&mut self, cost: Cost, item: ItemRef<'_>) {
        let steps = cost.of_item(item.size_bytes() as u64);
        self.steps_left = self.steps_left.saturating_sub(steps);
    }

    pub fn is_over(&self) -> bool {
        self.steps_left == 0
    }

    /// Yields to other tasks if the time slice is over.
    pub async fn yield_if_over(&mut self) {
        if self.is_over() {
            yield_now().await;
            self.steps_left = STEPS_PER_SLICE;
        }
    }
}
