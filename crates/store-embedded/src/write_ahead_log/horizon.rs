//! The durable horizon: the last RocksDB sequence number that was known to be durable when a group was
//! written. It is the first entry of the group's write, as data that only the log keeps.
//!
//! The store's nonce is next to it: a random number that no client ever sees. The reader of a damaged log searches
//! for records at every byte, even inside values. Without the nonce, a client could store a value that passes for a
//! record and claims that something durable is missing.
//!
//! This module and [`super::reader`] know nothing of RocksDB's library: they are fuzzed without it.

/// The random number of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nonce(pub u64);

/// What precedes the entries of a write in the log: its first sequence number and its number of entries.
pub(crate) const WRITE_HEADER_BYTES: usize = 8 + 4;

/// As much of a write as it takes to read its header and its horizon.
pub(crate) const WRITE_PREFIX_BYTES: usize = WRITE_HEADER_BYTES + 2 + HORIZON_BYTES;

/// RocksDB's tag of data that only the log keeps. Its length and the data follow.
const LOG_DATA_TAG: u8 = 3;
/// Tells the horizon from other data that later versions may put there. Kind 1 had no nonce.
const HORIZON_KIND: u8 = 2;
const HORIZON_BYTES: usize = 1 + 8 + 8;

/// What a write begins with, as data that only the log keeps.
pub(crate) fn encode(nonce: Nonce, horizon: u64) -> [u8; HORIZON_BYTES] {
    let mut data = [HORIZON_KIND; HORIZON_BYTES];
    data[1..9].copy_from_slice(&nonce.0.to_be_bytes());
    data[9..].copy_from_slice(&horizon.to_be_bytes());
    data
}

/// The horizon in the entries of a write, or `None` if this store has not written them.
pub(crate) fn decode(entries: &[u8], nonce: Nonce) -> Option<u64> {
    const LENGTH: u8 = HORIZON_BYTES as u8;
    let [LOG_DATA_TAG, LENGTH, HORIZON_KIND, rest @ ..] = entries else { return None };
    let (found, rest) = rest.split_first_chunk()?;
    let horizon = rest.first_chunk()?;
    (u64::from_be_bytes(*found) == nonce.0).then(|| u64::from_be_bytes(*horizon))
}
