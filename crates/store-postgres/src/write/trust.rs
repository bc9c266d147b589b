//! Whether to decide on cached values.
//!
//! A node that is alone in changing its keys finds its cache confirmed by every transaction. Where other nodes write the same keys,
//! the cache is often stale, and each time a whole group is decided twice. So for a while writes read their keys first, and for
//! longer each time that the cache turns out stale again.

use std::time::{Duration, Instant};

const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(8);

pub struct Trust {
    lost_until: Option<Instant>,
    next_pause: Duration,
}

impl Default for Trust {
    fn default() -> Trust {
        Trust { lost_until: None, next_pause: PAUSE_MIN }
    }
}

impl Trust {
    pub fn is_left(&mut self) -> bool {
        self.is_left_at(Instant::now)
    }

    /// The clock is read only while there is something to wait for.
    fn is_left_at(&mut self, now: impl FnOnce() -> Instant) -> bool {
        if self.lost_until.is_some_and(|until| now() < until) {
            return false;
        }
        self.lost_until = None;
        true
    }

    /// A group that was decided from memory met other values in the store.
    pub fn is_refuted(&mut self) {
        self.is_refuted_at(Instant::now());
    }

    fn is_refuted_at(&mut self, now: Instant) {
        // Groups that were decided before the first of them failed say nothing new.
        if self.is_left_at(|| now) {
            self.lost_until = Some(now + self.next_pause);
            self.next_pause = (self.next_pause * 2).min(PAUSE_MAX);
        }
    }

    /// A group that was decided from memory was committed.
    pub fn is_confirmed(&mut self) {
        self.next_pause = (self.next_pause / 2).max(PAUSE_MIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_fails_is_not_tried_again_for_longer_each_time() {
        let mut trust = Trust::default();
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            assert!(trust.is_left_at(|| now));
            trust.is_refuted_at(now);
            trust.is_refuted_at(now);
            let lost = now;
            while !trust.is_left_at(|| now) {
                now += Duration::from_millis(50);
            }
            pauses.push((now - lost).as_millis());
        }
        assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000, 8000, 8000]);
        (0..10).for_each(|_| trust.is_confirmed());
        trust.is_refuted_at(now);
        assert!(trust.is_left_at(|| now + PAUSE_MIN));
    }
}
