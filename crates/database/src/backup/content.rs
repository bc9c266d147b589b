//! Checksums of a copy's content.

use std::path::Path;
use std::time::Instant;

use zenobe_backup::manifest::ContentSums;
use zenobe_backup::{BackupError, CpuShare};
use zenobe_store::copying::{RangeSum, sum_from, sum_log_ends, sum_range};
use zenobe_store::{Key, Store};
use zenobe_store_embedded::EmbeddedStore;

use super::source::copy_options;

/// How much one checksum covers, and how much is read before others get the machine again.
const RANGE_BYTES: u64 = 8 << 20;

/// Reads a whole copy. `observe` hears of rows and bytes.
pub(super) async fn sum(
    path: &Path,
    cpu_share: &mut CpuShare,
    observe: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<ContentSums, BackupError> {
    let store = open(path)?;
    let mut content = ContentSums::default();
    let (mut rows, mut bytes) = (0, 0);
    let mut start = Some(Key::new());
    while let Some(from) = start {
        let begin = Instant::now();
        let range = sum_from(&store, from, RANGE_BYTES).await?;
        start = range.range.end.clone();
        rows += range.rows;
        bytes += range.bytes;
        content.ranges.push(range);
        observe(rows, bytes);
        cpu_share.rest_since(begin).await;
    }
    (content.log_ends, content.log_ends_checksum) = sum_log_ends(&store).await?;
    store.close().await?;
    Ok(content)
}

/// Compares a copy with what was recorded of its original, range by range.
pub(super) async fn compare(
    path: &Path,
    expected: &ContentSums,
    observe: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<(), BackupError> {
    let store = open(path)?;
    let damaged = |problem: String| {
        Err(BackupError::Damaged { object: "the restored copy".to_owned(), problem })
    };
    let (mut rows, mut bytes) = (0, 0);
    for range in &expected.ranges {
        let found = sum_range(&store, range.range.clone()).await?;
        if found != *range {
            return damaged(describe(range, &found));
        }
        rows += found.rows;
        bytes += found.bytes;
        observe(rows, bytes);
    }
    let found = sum_log_ends(&store).await?;
    if found != (expected.log_ends, expected.log_ends_checksum) {
        return damaged(format!(
            "{} ends of logs instead of {}, or others",
            found.0, expected.log_ends
        ));
    }
    store.close().await?;
    Ok(())
}

fn open(path: &Path) -> Result<EmbeddedStore, BackupError> {
    Ok(EmbeddedStore::open(path, copy_options())?)
}

fn describe(expected: &RangeSum, found: &RangeSum) -> String {
    format!(
        "the keys from {:?} to {:?} have {} rows, {} bytes and checksum {:032x} instead of {}, {} and {:032x}",
        expected.range.start,
        expected.range.end,
        found.rows,
        found.bytes,
        found.checksum,
        expected.rows,
        expected.bytes,
        expected.checksum,
    )
}
