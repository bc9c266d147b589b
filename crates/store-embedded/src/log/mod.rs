//! RocksDB's write-ahead log, as far as this crate looks into it: to tell a damaged log from a torn one.
//!
//! Replay ends at the first record that is not intact, since a crash leaves such records at the log's end.
//! Damage in the middle looks the same to RocksDB, and everything acknowledged behind it would be lost
//! without a word. So each group carries the [`horizon`] up to which the log was durable when the group was
//! written, and before RocksDB opens a database, [`check`] reads its logs ([`reader`]): records that are
//! missing although a later one says that they were durable are damage.

mod check;
pub(crate) mod horizon;
mod manifest;
mod reader;

use rocksdb::WriteBatch;

pub(crate) use check::{AcceptDamage, check};
pub(crate) use manifest::mend_manifest;

/// A write that begins with the nonce and the horizon.
pub(crate) fn write_with(nonce: horizon::Nonce, horizon: u64, capacity_bytes: usize) -> WriteBatch {
    let mut write = WriteBatch::with_capacity_bytes(capacity_bytes + horizon::WRITE_PREFIX_BYTES);
    write.put_log_data(horizon::encode(nonce, horizon));
    write
}
