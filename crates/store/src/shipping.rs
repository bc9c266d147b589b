//! What a backend hands out so that its log can be shipped elsewhere: commit groups, in the commit order.

use bytes::Bytes;

use crate::Stamp;

/// One commit group, encoded as the backend that wrote it reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogGroup {
    /// The number of its first entry. Groups follow each other without a gap.
    pub first: u64,
    /// How many numbers it takes.
    pub entries: u32,
    /// When it was committed. Stamps of groups rise strictly in the commit order, whatever the clock does.
    pub stamp: Stamp,
    pub bytes: Bytes,
}

impl LogGroup {
    /// The number of the first entry of the group after it.
    pub fn next(&self) -> u64 {
        self.first.saturating_add(self.entries.into())
    }
}

/// Why the groups after the last one are not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FollowError {
    /// They were taken too slowly, and too many waited.
    #[error("more than {limit_bytes} bytes were waiting to be shipped")]
    Overrun { limit_bytes: usize },
    /// What the store recovers from its log may be more than what it has published.
    #[error("the store had to recover from a failure")]
    Recovered,
    /// Another store has taken over, or this one is closed.
    #[error("the store is no longer in use")]
    Ended,
}
