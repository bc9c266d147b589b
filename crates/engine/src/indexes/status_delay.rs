//! Holds the statuses of indexes. Work on an index is done within moments, so a program that waits
//! for CREATING or DELETING would never see it. Each status can therefore be held for a while, as
//! in DynamoDB Local.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::schema::{IndexId, IndexStatus, TableId};

/// How often to check whether a status has been held long enough.
const LOOK_DELAY: Duration = Duration::from_millis(200);

#[derive(Default)]
pub(crate) struct StatusDelay {
    /// Kept in memory: after a restart the hold starts over.
    seen: Mutex<Vec<Seen>>,
}

type HeldStatus = (TableId, IndexId, IndexStatus);

/// Since when an index has had its status, and how long it must keep it.
struct Seen {
    status: HeldStatus,
    since: Instant,
    hold: Duration,
}

impl StatusDelay {
    /// Whether the index may leave the status, which lasts for `hold`.
    pub fn is_over(&self, status: HeldStatus, hold: Duration) -> bool {
        if hold.is_zero() {
            return true;
        }
        let mut seen = self.seen.lock();
        match seen.iter().position(|other| other.status == status) {
            None => {
                seen.push(Seen { status, since: Instant::now(), hold });
                false
            }
            Some(position) if seen[position].since.elapsed() < seen[position].hold => false,
            Some(position) => {
                seen.swap_remove(position);
                true
            }
        }
    }

    /// When to check again, if anything is held.
    pub fn next_look(&self) -> Option<Duration> {
        let mut seen = self.seen.lock();
        // Nobody asks again about an index that was deleted with its table.
        seen.retain(|seen| seen.since.elapsed() < seen.hold * 2 + LOOK_DELAY);
        (!seen.is_empty()).then_some(LOOK_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATING: IndexStatus = IndexStatus::Creating { backfilling: false };

    #[tokio::test(start_paused = true)]
    async fn a_status_is_held_for_its_time_and_then_left_once() {
        let hold = StatusDelay::default();
        let is_over =
            |status| hold.is_over((TableId(1), IndexId(1), status), Duration::from_secs(15));
        assert!(!is_over(CREATING));
        assert_eq!(hold.next_look(), Some(LOOK_DELAY));
        tokio::time::advance(Duration::from_millis(14_999)).await;
        assert!(!is_over(CREATING) && !is_over(IndexStatus::Deleting));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(is_over(CREATING) && !is_over(IndexStatus::Deleting));
        tokio::time::advance(Duration::from_secs(31)).await;
        assert_eq!(hold.next_look(), None);
    }

    #[tokio::test]
    async fn nothing_is_held_by_default() {
        let hold = StatusDelay::default();
        assert!(hold.is_over((TableId(1), IndexId(1), CREATING), Duration::ZERO));
        assert_eq!(hold.next_look(), None);
    }
}
