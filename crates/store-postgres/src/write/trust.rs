//! Whether to decide on cached values.
//!
//! A node that is alone in changing its keys finds its cache confirmed by every transaction. If other nodes write the same keys,
//! the cache is often stale, and each time a whole group is decided twice. So for a while writes read their keys first, and for
//! longer each time that the cache turns out stale again.

use std::time::{Duration, Instant};

const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(8);

pub struct CacheTrust {
    lost_until: Option<Instant>,
    next_pause: Duration,
}

impl Default for CacheTrust {
    fn default() -> CacheTrust {
        CacheTrust { lost_until: None, next_pause: PAUSE_MIN }
    }
}

impl CacheTrust {
    /// Whether to decide on cached values now. The first call after a pause ends it.
    pub fn check(&mut self) -> bool {
        self.check_at(Instant::now)
    }

    /// The clock is read only while there is something to wait for.
    fn check_at(&mut self, now: impl FnOnce() -> Instant) -> bool {
        if self.lost_until.is_some_and(|until| now() < until) {
            return false;
        }
        self.lost_until = None;
        true
    }

    /// A group that was decided on cached values met other values in the store.
    pub fn record_conflict(&mut self) {
        self.record_conflict_at(Instant::now());
    }

    fn record_conflict_at(&mut self, now: Instant) {
        // A conflict during a pause comes from a group decided before it, and says nothing new.
        if self.check_at(|| now) {
            self.lost_until = Some(now + self.next_pause);
            self.next_pause = (self.next_pause * 2).min(PAUSE_MAX);
        }
    }

    /// A group that was decided on cached values was committed.
    pub fn record_commit(&mut self) {
        self.next_pause = (self.next_pause / 2).max(PAUSE_MIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_was_stale_is_not_tried_again_for_longer_each_time() {
        let mut trust = CacheTrust::default();
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            assert!(trust.check_at(|| now));
            trust.record_conflict_at(now);
            trust.record_conflict_at(now);
            let lost = now;
            while !trust.check_at(|| now) {
                now += Duration::from_millis(50);
            }
            pauses.push((now - lost).as_millis());
        }
        assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000, 8000, 8000]);
        (0..10).for_each(|_| trust.record_commit());
        trust.record_conflict_at(now);
        assert!(trust.check_at(|| now + PAUSE_MIN));
    }
}
