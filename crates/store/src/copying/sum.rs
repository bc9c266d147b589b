//! Checksums of a store's content, range by range, to compare it with a copy that somebody else made.

use std::ops::ControlFlow;

use super::chunk::RangeChecksum;
use super::successor;
use crate::{Direction, Key, KeyRange, Reader, Result, Store};

/// The content of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeSum {
    pub range: KeyRange,
    pub rows: u64,
    /// The bytes of keys and values.
    pub bytes: u64,
    pub checksum: u128,
}

/// How many ends of logs are read at once.
const LOG_ENDS_PAGE: usize = 1_000;

/// Sums the entries from `start` on: `bytes_max` bytes of them, or one entry more. The range of the last sum has no end.
pub async fn sum_from(reader: &dyn Reader, start: Key, bytes_max: u64) -> Result<RangeSum> {
    sum(reader, KeyRange { start, end: None }, bytes_max).await
}

/// Sums all entries of a range.
pub async fn sum_range(reader: &dyn Reader, range: KeyRange) -> Result<RangeSum> {
    sum(reader, range, u64::MAX).await
}

async fn sum(reader: &dyn Reader, range: KeyRange, bytes_max: u64) -> Result<RangeSum> {
    let mut checksum = RangeChecksum::default();
    let (mut rows, mut bytes) = (0, 0);
    let mut last: Option<Key> = None;
    let mut visit = |key: &[u8], value: &[u8]| {
        checksum.add(key, value);
        rows += 1;
        bytes += (key.len() + value.len()) as u64;
        if bytes < bytes_max {
            return ControlFlow::Continue(());
        }
        last = Some(Key::copy_from_slice(key));
        ControlFlow::Break(())
    };
    reader.scan(range.clone(), Direction::Forward, &mut visit).await?;
    let end = last.map(|last| successor(&last)).or(range.end);
    let range = KeyRange { start: range.start, end };
    Ok(RangeSum { range, rows, bytes, checksum: checksum.get() })
}

/// Sums the ends of all logs, which are not among the entries: how many there are, and their checksum.
pub async fn sum_log_ends(store: &dyn Store) -> Result<(u64, u128)> {
    let mut checksum = RangeChecksum::default();
    let mut count = 0;
    let mut start = Key::new();
    loop {
        let ends = store.log_ends(&start, LOG_ENDS_PAGE).await?;
        for (log, end) in &ends {
            let value = [end.sequence.to_be_bytes(), end.stamp.to_be_bytes()].concat();
            checksum.add(log, &value);
            count += 1;
        }
        match ends.last() {
            Some((log, _)) if ends.len() == LOG_ENDS_PAGE => start = successor(log),
            _ => return Ok((count, checksum.get())),
        }
    }
}
