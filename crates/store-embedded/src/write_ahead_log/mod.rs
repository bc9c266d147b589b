//! What this crate reads in RocksDB's write-ahead log, to tell a damaged log from a torn one.
//!
//! Replay ends at the first record that is not intact, because a crash leaves such records at the end of the log. Damage
//! in the middle looks the same to RocksDB, and every acknowledged write behind it would be lost silently. So each commit
//! group carries the [`horizon`]: how far the log was durable when the group was written. Before RocksDB opens a
//! database, [`check`] reads its logs ([`reader`]). A record that is missing, although a later one says that it was
//! durable, is damage.

mod check;
pub(crate) mod horizon;
mod manifest;
mod reader;

use rocksdb::WriteBatch;

pub(crate) use check::{AcceptDamage, check};
pub(crate) use manifest::mend_manifest;

/// An empty batch that begins with the nonce and the horizon.
pub(crate) fn batch_with_horizon(
    nonce: horizon::Nonce,
    horizon: u64,
    capacity_bytes: usize,
) -> WriteBatch {
    let mut write = WriteBatch::with_capacity_bytes(capacity_bytes + horizon::WRITE_PREFIX_BYTES);
    write.put_log_data(horizon::encode(nonce, horizon));
    write
}

/// How many entries a write has: the number behind its sequence number, little-endian.
pub(crate) fn entries_of(batch: &[u8]) -> u32 {
    let count = batch.get(8..horizon::WRITE_HEADER_BYTES).and_then(|count| count.try_into().ok());
    count.map_or(0, u32::from_le_bytes)
}
