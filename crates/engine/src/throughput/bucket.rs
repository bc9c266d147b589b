//! Token buckets: capacity that refills over time and, while unused, is saved up to a limit.
//!
//! A bucket is a single number: the moment until which its capacity is spent. Before that moment it
//! is in debt; the further the moment lies in the past, the more it has saved. Taking units moves
//! the moment forward by the time that they take to refill. So a request needs one
//! compare-and-swap, and nothing has to refill buckets.

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;

/// The clock's milliseconds in the unit of the buckets.
pub(crate) fn nanoseconds(at_ms: u64) -> u64 {
    at_ms.saturating_mul(MILLISECOND_NS)
}

/// How fast a bucket refills, and how much it saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RefillRate {
    pub units_per_second: u64,
    /// How many seconds of unused capacity it saves.
    pub burst_s: u64,
}

#[derive(Debug)]
pub(crate) struct Bucket {
    /// In nanoseconds since the epoch.
    spent_until_ns: AtomicU64,
    /// What half a unit costs, as the time that it takes to refill.
    half_ns: AtomicU64,
    burst_ns: AtomicU64,
}

impl Bucket {
    /// A bucket that starts with one second's worth of capacity at `since_ns`.
    pub fn new(since_ns: u64, rate: RefillRate, nodes: u64) -> Bucket {
        let bucket = Bucket {
            spent_until_ns: AtomicU64::new(since_ns.saturating_sub(SECOND_NS)),
            half_ns: AtomicU64::new(0),
            burst_ns: AtomicU64::new(0),
        };
        bucket.set_rate(rate, nodes);
        bucket
    }

    /// Each of several nodes has an equal share of the rate. Savings are kept as time, so they cover
    /// as many seconds at the new rate.
    pub fn set_rate(&self, rate: RefillRate, nodes: u64) {
        // A rate of zero can only come from a damaged row; treating it as one avoids a division by zero.
        let half_ns = (nodes.max(1) * SECOND_NS / 2).div_ceil(rate.units_per_second.max(1));
        self.half_ns.store(half_ns, Ordering::Relaxed);
        self.burst_ns.store(rate.burst_s * SECOND_NS, Ordering::Relaxed);
    }

    /// Takes half units if the bucket has any at all; it may then be in debt.
    pub fn take(&self, now_ns: u64, halves: u64) -> bool {
        let take = |spent_until_ns| {
            (spent_until_ns < now_ns).then(|| self.after(spent_until_ns, now_ns, halves))
        };
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        self.spent_until_ns.fetch_update(set, get, take).is_ok()
    }

    /// Takes half units even if the bucket has none: the request has been admitted already.
    pub fn charge(&self, now_ns: u64, halves: u64) {
        let charge = |spent_until_ns| Some(self.after(spent_until_ns, now_ns, halves));
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.spent_until_ns.fetch_update(set, get, charge);
    }

    /// Gives back what was taken for a request that consumed nothing.
    pub fn refund(&self, halves: u64) {
        self.set_back(halves.saturating_mul(self.half_ns.load(Ordering::Relaxed)));
    }

    /// Whether a request would be admitted.
    pub fn has_any(&self, now_ns: u64) -> bool {
        self.spent_until_ns.load(Ordering::Relaxed) < now_ns
    }

    /// Whether it has saved all that it can.
    pub fn is_full(&self, now_ns: u64) -> bool {
        let full_ns = now_ns.saturating_sub(self.burst_ns.load(Ordering::Relaxed));
        self.spent_until_ns.load(Ordering::Relaxed) <= full_ns
    }

    /// Follows a clock that was set back: debts and savings stay what they were.
    pub fn set_back(&self, by_ns: u64) {
        // A clock near 1970 leaves less than there is to subtract. A number that wrapped would be a
        // debt of centuries.
        let earlier = |spent_until_ns: u64| Some(spent_until_ns.saturating_sub(by_ns));
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.spent_until_ns.fetch_update(set, get, earlier);
    }

    /// The whole units that are left; negative if the bucket is in debt.
    pub fn units_left(&self, now_ns: u64) -> i64 {
        let burst_ns = self.burst_ns.load(Ordering::Relaxed);
        let spent_until_ns = self.spent_until_ns.load(Ordering::Relaxed);
        let saved_ns = i128::from(now_ns) - i128::from(spent_until_ns);
        let unit_ns = 2 * i128::from(self.half_ns.load(Ordering::Relaxed));
        i64::try_from(saved_ns.min(i128::from(burst_ns)).div_euclid(unit_ns)).unwrap_or(i64::MIN)
    }

    fn after(&self, spent_until_ns: u64, now_ns: u64, halves: u64) -> u64 {
        let full_ns = now_ns.saturating_sub(self.burst_ns.load(Ordering::Relaxed));
        let price_ns = halves.saturating_mul(self.half_ns.load(Ordering::Relaxed));
        spent_until_ns.max(full_ns).saturating_add(price_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_NS: u64 = 1_000_000 * SECOND_NS;

    fn bucket(units_per_second: u64, burst_s: u64, nodes: u64) -> Bucket {
        Bucket::new(START_NS, RefillRate { units_per_second, burst_s }, nodes)
    }

    /// How many requests of one unit are admitted at a moment.
    fn admitted(bucket: &Bucket, now_ns: u64) -> usize {
        (0..100_000).take_while(|_| bucket.take(now_ns, 2)).count()
    }

    /// 100 write units that are unused for 300 or 600 seconds make 30,000.
    #[test]
    fn unused_capacity_is_saved_for_three_hundred_seconds() {
        for (idle_s, expected) in
            [(0, 100), (10, 1_100), (299, 30_000), (300, 30_000), (600, 30_000)]
        {
            let bucket = bucket(100, 300, 1);
            let now_ns = START_NS + idle_s * SECOND_NS;
            assert_eq!(bucket.units_left(now_ns), expected as i64, "after {idle_s} s");
            assert_eq!(admitted(&bucket, now_ns), expected, "after {idle_s} s");
            assert_eq!(admitted(&bucket, now_ns), 0);
            assert_eq!(admitted(&bucket, now_ns + SECOND_NS), 100, "then as provisioned");
        }
    }

    #[test]
    fn one_request_may_exceed_what_is_left() {
        let bucket = bucket(1, 300, 1);
        assert!(bucket.take(START_NS, 2 * 400), "an item of 400 KB");
        assert_eq!(bucket.units_left(START_NS), -399);
        assert!(!bucket.take(START_NS + 399 * SECOND_NS, 2));
        assert!(bucket.take(START_NS + 400 * SECOND_NS, 2));
        bucket.charge(START_NS, 6);
        bucket.refund(6);
        assert!(!bucket.has_any(START_NS + 400 * SECOND_NS));
        assert!(bucket.has_any(START_NS + 401 * SECOND_NS));
    }

    #[test]
    fn nodes_share_a_rate_evenly() {
        let shares = [bucket(90, 300, 3), bucket(90, 300, 3), bucket(90, 300, 3)];
        let counts = shares.iter().map(|share| admitted(share, START_NS + SECOND_NS));
        assert_eq!(counts.sum::<usize>(), 3 * 60);
    }

    #[test]
    fn a_clock_that_is_set_back_neither_refuses_nor_gives_more() {
        let bucket = bucket(10, 300, 1);
        let before = bucket.units_left(START_NS);
        bucket.set_back(3_600 * SECOND_NS);
        assert_eq!(bucket.units_left(START_NS - 3_600 * SECOND_NS), before);
    }

    #[test]
    fn a_clock_that_falls_to_1970_admits_requests() {
        let bucket = bucket(10, 300, 1);
        bucket.set_back(START_NS);
        assert!(bucket.take(SECOND_NS, 2));
        let new = Bucket::new(0, RefillRate { units_per_second: 10, burst_s: 300 }, 1);
        new.refund(2);
        assert!(new.take(SECOND_NS, 2));
    }

    #[test]
    fn threads_take_no_more_than_there_is() {
        let bucket = bucket(10_000, 1, 1);
        let count = || (0..10_000).filter(|_| bucket.take(START_NS, 2)).count();
        let total: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(total, 10_000);
    }
}
