//! Collects records into batches. It is pure: time is an argument.

use std::time::{Duration, Instant};

use super::record::DeliveredRecord;

/// Lambda's limit on the payload of an invocation.
pub const BATCH_SIZE_BYTES_MAX: usize = 6 * 1024 * 1024;
/// `{"Records":[]}` and the separators.
const ENVELOPE_SIZE_BYTES: usize = 16;

#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    pub records_max: usize,
    pub window: Duration,
}

#[derive(Debug)]
pub struct Batcher {
    limits: BatchLimits,
    records: Vec<DeliveredRecord>,
    size_bytes: usize,
    /// When the first record arrived.
    since: Option<Instant>,
}

impl Batcher {
    pub fn new(limits: BatchLimits) -> Batcher {
        Batcher { limits, records: Vec::new(), size_bytes: ENVELOPE_SIZE_BYTES, since: None }
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether one more record fits in the batch. An empty batch takes any.
    pub fn fits(&self, record: &DeliveredRecord) -> bool {
        self.records.is_empty()
            || (self.records.len() < self.limits.records_max
                && self.size_bytes + record.size_bytes() < BATCH_SIZE_BYTES_MAX)
    }

    pub fn push(&mut self, record: DeliveredRecord, now: Instant) {
        debug_assert!(self.fits(&record));
        self.since.get_or_insert(now);
        self.size_bytes += record.size_bytes() + 1;
        self.records.push(record);
    }

    pub fn is_full(&self) -> bool {
        self.records.len() >= self.limits.records_max || self.size_bytes >= BATCH_SIZE_BYTES_MAX
    }

    /// How long to wait for more before the batch must be sent; `None` if there is no batch.
    pub fn time_left(&self, now: Instant) -> Option<Duration> {
        let waited = now.saturating_duration_since(self.since?);
        Some(self.limits.window.saturating_sub(waited))
    }

    pub fn take(&mut self) -> Vec<DeliveredRecord> {
        let limits = self.limits;
        std::mem::replace(self, Batcher::new(limits)).records
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{sample, sample_of_size};
    use super::*;

    fn batcher(records_max: usize, window_ms: u64) -> Batcher {
        Batcher::new(BatchLimits { records_max, window: Duration::from_millis(window_ms) })
    }

    #[test]
    fn a_batch_is_full_by_count() {
        let (mut batcher, now) = (batcher(2, 0), Instant::now());
        assert!(batcher.is_empty() && batcher.time_left(now).is_none());
        batcher.push(sample(1, 0), now);
        assert!(!batcher.is_full() && batcher.fits(&sample(2, 0)));
        batcher.push(sample(2, 0), now);
        assert!(batcher.is_full() && !batcher.fits(&sample(3, 0)));
        assert_eq!(batcher.take().len(), 2);
        assert!(batcher.is_empty() && !batcher.is_full());
    }

    #[test]
    fn a_batch_is_full_by_size_but_takes_one_record_of_any_size() {
        let (mut batcher, now) = (batcher(100, 0), Instant::now());
        let large = sample_of_size(BATCH_SIZE_BYTES_MAX * 2 / 3);
        batcher.push(large.clone(), now);
        assert!(!batcher.is_full() && !batcher.fits(&large));
        assert!(batcher.fits(&sample(2, 0)));
        batcher.take();
        let enormous = sample_of_size(2 * BATCH_SIZE_BYTES_MAX);
        assert!(batcher.fits(&enormous));
        batcher.push(enormous, now);
        assert!(batcher.is_full());
    }

    #[test]
    fn the_window_begins_with_the_first_record() {
        let (mut batcher, start) = (batcher(10, 500), Instant::now());
        batcher.push(sample(1, 0), start);
        batcher.push(sample(2, 0), start + Duration::from_millis(300));
        let left = |at_ms| batcher.time_left(start + Duration::from_millis(at_ms)).unwrap();
        assert_eq!(left(300), Duration::from_millis(200));
        assert_eq!(left(900), Duration::ZERO);
    }
}
