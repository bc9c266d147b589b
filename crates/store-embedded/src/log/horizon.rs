//! The durable horizon: the last RocksDB sequence number that was known to be durable when a group was
//! written. It is the first entry of the group's write, as data that only the log keeps.

use rocksdb::WriteBatch;

/// What precedes the entries of a write in the log: its first sequence number and its number of entries.
pub(crate) const WRITE_HEADER_BYTES: usize = 8 + 4;

/// As much of a write as it takes to read its header and its horizon.
pub(crate) const WRITE_PREFIX_BYTES: usize = WRITE_HEADER_BYTES + 2 + HORIZON_BYTES;

/// RocksDB's tag of data that only the log keeps. Its length and the data follow.
const LOG_DATA_TAG: u8 = 3;
/// Tells the horizon from whatever else may once be put there.
const HORIZON_KIND: u8 = 1;
const HORIZON_BYTES: usize = 1 + 8;

/// A write that begins with the horizon.
pub(crate) fn write_with(horizon: u64, capacity_bytes: usize) -> WriteBatch {
    let mut write = WriteBatch::with_capacity_bytes(capacity_bytes + WRITE_PREFIX_BYTES);
    let mut data = [HORIZON_KIND; HORIZON_BYTES];
    data[1..].copy_from_slice(&horizon.to_be_bytes());
    write.put_log_data(data);
    write
}

/// The horizon in the entries of a write, if they begin with one.
pub(crate) fn decode(entries: &[u8]) -> Option<u64> {
    const LENGTH: u8 = HORIZON_BYTES as u8;
    match entries {
        [LOG_DATA_TAG, LENGTH, HORIZON_KIND, rest @ ..] => {
            rest.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
        }
        _ => None,
    }
}
