//! What is counted for a kind of request.

use std::time::Duration;

use zenobe_engine::throughput::cause::{Access, ThrottleEvents};

/// What happened to requests of one kind. A request counts once for each table that it reached; its units
/// and throttle events count where they belong, which may be a global index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrafficCounts {
    pub requests: u64,
    pub succeeded: u64,
    /// Requests with a 4xx status, except those that were throttled or failed a condition. CloudWatch has one count for the
    /// account, so a request counts for the first of its tables only.
    pub user_errors: u64,
    /// Requests with a 5xx status.
    pub system_errors: u64,
    /// Requests that met a limit of throughput, whether or not they were refused for it.
    pub throttled_requests: u64,
    pub conditional_check_failures: u64,
    /// Requests refused because of a transaction; not the reasons of cancelled transactions.
    pub transaction_conflicts: u64,
    pub read_halves: u64,
    pub write_halves: u64,
    /// Requests that consumed read units of the table or index. One that was refused consumes none.
    pub consuming_reads: u64,
    /// Requests that consumed write units of the table or index.
    pub consuming_writes: u64,
    /// Items that pages of a Query or a Scan returned.
    pub returned_items: u64,
    /// Reads that met a limit, whether or not they were refused for it. A request may have many.
    pub throttled_reads: ThrottleEvents,
    /// Writes that met a limit.
    pub throttled_writes: ThrottleEvents,
    /// Of requests that succeeded.
    pub latency: Latency,
}

/// The counts of requests that are summed for as long as the process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestSums {
    pub requests: u64,
    pub succeeded: u64,
    /// Of requests that succeeded.
    pub latency_us: u64,
    pub user_errors: u64,
    pub system_errors: u64,
    /// Those of the system errors that a test wanted.
    pub injected_errors: u64,
    pub throttled_requests: u64,
    pub conditional_check_failures: u64,
    pub transaction_conflicts: u64,
    pub returned_items: u64,
}

impl RequestSums {
    pub fn of(counts: &TrafficCounts) -> RequestSums {
        RequestSums {
            requests: counts.requests,
            succeeded: counts.succeeded,
            latency_us: counts.latency.sum_us,
            user_errors: counts.user_errors,
            system_errors: counts.system_errors,
            injected_errors: 0,
            throttled_requests: counts.throttled_requests,
            conditional_check_failures: counts.conditional_check_failures,
            transaction_conflicts: counts.transaction_conflicts,
            returned_items: counts.returned_items,
        }
    }

    pub fn add(&mut self, other: &RequestSums) {
        self.requests += other.requests;
        self.succeeded += other.succeeded;
        self.latency_us = self.latency_us.saturating_add(other.latency_us);
        self.user_errors += other.user_errors;
        self.system_errors += other.system_errors;
        self.injected_errors += other.injected_errors;
        self.throttled_requests += other.throttled_requests;
        self.conditional_check_failures += other.conditional_check_failures;
        self.transaction_conflicts += other.transaction_conflicts;
        self.returned_items += other.returned_items;
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub status: u16,
    pub error: Option<&'static str>,
    pub elapsed: Duration,
    /// Whether it met a limit of throughput.
    pub is_throttled: bool,
    /// Whether it has been counted for another table.
    pub is_counted: bool,
}

const THROTTLING: [&str; 3] =
    ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"];

impl TrafficCounts {
    pub(super) fn add_request(&mut self, ended: &Ended) {
        self.requests += 1;
        let is_throttled =
            ended.is_throttled || ended.error.is_some_and(|error| THROTTLING.contains(&error));
        self.throttled_requests += u64::from(is_throttled);
        match (ended.status, ended.error) {
            (200..300, _) => {
                self.succeeded += 1;
                self.latency.add(ended.elapsed);
            }
            (500.., _) => self.system_errors += 1,
            (_, Some("ConditionalCheckFailedException")) => self.conditional_check_failures += 1,
            (_, Some(error)) if THROTTLING.contains(&error) => {}
            (_, error) => {
                self.user_errors += u64::from(!ended.is_counted);
                let is_conflict = error == Some("TransactionConflictException");
                self.transaction_conflicts += u64::from(is_conflict);
            }
        }
    }

    pub(super) fn add_halves(&mut self, access: Access, halves: u64) {
        match access {
            Access::Read => self.read_halves += halves,
            Access::Write => self.write_halves += halves,
        }
    }

    pub(super) fn add_consumer(&mut self, access: Access) {
        match access {
            Access::Read => self.consuming_reads += 1,
            Access::Write => self.consuming_writes += 1,
        }
    }

    pub(super) fn throttled(&mut self, access: Access) -> &mut ThrottleEvents {
        match access {
            Access::Read => &mut self.throttled_reads,
            Access::Write => &mut self.throttled_writes,
        }
    }

    /// Adds what was counted elsewhere.
    pub fn merge(&mut self, other: &TrafficCounts) {
        self.requests += other.requests;
        self.succeeded += other.succeeded;
        self.user_errors += other.user_errors;
        self.system_errors += other.system_errors;
        self.throttled_requests += other.throttled_requests;
        self.conditional_check_failures += other.conditional_check_failures;
        self.transaction_conflicts += other.transaction_conflicts;
        self.read_halves += other.read_halves;
        self.write_halves += other.write_halves;
        self.consuming_reads += other.consuming_reads;
        self.consuming_writes += other.consuming_writes;
        self.returned_items += other.returned_items;
        self.throttled_reads.merge(&other.throttled_reads);
        self.throttled_writes.merge(&other.throttled_writes);
        self.latency.merge(&other.latency);
    }
}

/// How many buckets a latency falls into: four for each doubling, from a microsecond to over an hour.
pub const LATENCY_BUCKETS: usize = 128;

/// How long requests took, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latency {
    pub count: u64,
    pub sum_us: u64,
    /// `u64::MAX` if there was no request.
    pub min_us: u64,
    pub max_us: u64,
    /// How many requests fell into each bucket ([`bucket_limit_us`]).
    pub buckets: [u32; LATENCY_BUCKETS],
}

impl Default for Latency {
    fn default() -> Latency {
        Latency { count: 0, sum_us: 0, min_us: u64::MAX, max_us: 0, buckets: [0; LATENCY_BUCKETS] }
    }
}

impl Latency {
    pub fn add(&mut self, elapsed: Duration) {
        let us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        self.count += 1;
        self.sum_us = self.sum_us.saturating_add(us);
        self.min_us = self.min_us.min(us);
        self.max_us = self.max_us.max(us);
        let bucket = &mut self.buckets[bucket_of(us)];
        *bucket = bucket.saturating_add(1);
    }

    pub fn merge(&mut self, other: &Latency) {
        self.count += other.count;
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        self.min_us = self.min_us.min(other.min_us);
        self.max_us = self.max_us.max(other.max_us);
        for (bucket, other) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket = bucket.saturating_add(*other);
        }
    }
}

/// The bucket of a latency: by its highest bit and the two bits after it.
pub fn bucket_of(us: u64) -> usize {
    let us = us.max(1);
    let octave = us.ilog2();
    let quarter = match octave {
        0 => 0,
        1 => (us & 1) << 1,
        _ => (us >> (octave - 2)) & 3,
    };
    (octave as usize * 4 + quarter as usize).min(LATENCY_BUCKETS - 1)
}

/// Every latency in a bucket is less than this; the last bucket has no limit.
pub fn bucket_limit_us(bucket: usize) -> u64 {
    if bucket + 1 >= LATENCY_BUCKETS {
        return u64::MAX;
    }
    let (octave, quarter) = (bucket / 4, bucket as u64 % 4);
    let start = 1_u64 << octave;
    start + ((quarter + 1) * start).div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_falls_into_the_bucket_below_its_limit() {
        let samples = (0..2_000).chain((11..63).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + 1, power + power / 3]
        }));
        for us in samples {
            let bucket = bucket_of(us);
            assert!(us < bucket_limit_us(bucket) || bucket == LATENCY_BUCKETS - 1, "{us}");
            assert!(bucket == 0 || us >= bucket_limit_us(bucket - 1), "{us}");
            assert!(bucket == 0 || bucket_of(us - 1) <= bucket, "{us}");
        }
        // Within a quarter of a doubling.
        assert!(bucket_limit_us(bucket_of(1_000)) <= 1_250);
        assert!(bucket_limit_us(LATENCY_BUCKETS - 2) > 3_600_000_000);
    }

    #[test]
    fn requests_are_counted_by_how_they_ended() {
        let ended = |status, error| Ended {
            status,
            error,
            elapsed: Duration::from_micros(250),
            is_throttled: false,
            is_counted: false,
        };
        let mut counts = TrafficCounts::default();
        counts.add_request(&ended(200, None));
        counts.add_request(&Ended { is_throttled: true, ..ended(200, None) });
        counts.add_request(&ended(400, Some("ConditionalCheckFailedException")));
        counts.add_request(&ended(400, Some("ProvisionedThroughputExceededException")));
        counts.add_request(&ended(400, Some("TransactionConflictException")));
        counts.add_request(&ended(400, Some("ValidationException")));
        counts.add_request(&ended(500, Some("InternalServerError")));
        let ended = [counts.requests, counts.succeeded, counts.user_errors, counts.system_errors];
        assert_eq!(ended, [7, 2, 2, 1]);
        assert_eq!((counts.throttled_requests, counts.conditional_check_failures), (2, 1));
        assert_eq!(counts.transaction_conflicts, 1);
        assert_eq!((counts.latency.count, counts.latency.sum_us), (2, 500));
        let mut twice = counts.clone();
        twice.merge(&counts);
        assert_eq!((twice.requests, twice.latency.buckets[bucket_of(250)]), (14, 4));
        assert_eq!((twice.latency.min_us, twice.latency.max_us), (250, 250));
    }
}
