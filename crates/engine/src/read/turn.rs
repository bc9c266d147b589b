//! Turns on a thread. A store that never waits would let a costly filter keep everybody else out for a whole page.

use zenobe_expression::{Condition, Cost};
use zenobe_value::ItemRef;

use crate::background::yield_now;

/// About a millisecond's worth of a filter's steps.
const STEPS_PER_TURN: u64 = 2_000_000;

/// Measures a filter's work and says when it is somebody else's turn.
pub(super) struct Turn {
    cost: Cost,
    steps_left: u64,
}

impl Turn {
    pub fn new(filter: Option<&Condition>) -> Turn {
        let cost = filter.map(Condition::cost).unwrap_or_default();
        Turn { cost, steps_left: STEPS_PER_TURN }
    }

    /// Records that the filter was evaluated on an item.
    pub fn spend(&mut self, item: ItemRef<'_>) {
        let steps = self.cost.of_item(item.size_bytes() as u64);
        self.steps_left = self.steps_left.saturating_sub(steps);
    }

    pub fn is_over(&self) -> bool {
        self.steps_left == 0
    }

    /// Lets others run if the turn is over.
    pub async fn pass(&mut self) {
        if self.is_over() {
            yield_now().await;
            self.steps_left = STEPS_PER_TURN;
        }
    }
}
