//! Copies one store into another: every entry, every counter, and every log with its numbering.
//!
//! The copy is made range by range ([`StoreCopy::entries`]). Each range is written in one batch, read back from
//! the target, and compared by its checksum. A row in the target ([`CopyNote`]) says how far the
//! copy is verified, so a copy that was interrupted continues there. While the row says so, the
//! target is not complete, and [`check_servable`] refuses it.
//!
//! A source that is written to meanwhile has a [`ChangeTracker`], which names the keys that have changed.
//! They are read again and copied after each range, and in rounds at the end ([`StoreCopy::catch_up`]).
//! Changes are copied by their present values, not replayed, so it does no harm to copy one twice.
//!
//! [`Seal`] is the row in the source that says where its content has gone.
//!
//! **Invariant:** keys that begin with [`RESERVED`] belong to this module. They are never copied.

mod changes;
mod chunk;
mod copy;
mod note;
mod sum;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use crate::{Direction, Error, Key, KeyRange, Reader, Store, prefix_end};

pub use changes::{CHANGES_MAX, ChangeTracker, ChangedKeys};
pub use copy::{CopyCounts, CopyOptions, OnProgress, StoreCopy};
pub use note::{CopyNote, CopyState, Obstacle, Seal, SealState, check_servable, copy_note, seal};
pub use sum::{RangeSum, sum_from, sum_log_ends, sum_range};

/// The keys of this module's own rows begin with this.
pub const RESERVED: &[u8] = b"\0zenobe/";

pub type CopyResult<T> = Result<T, CopyError>;

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("the source: {0}")]
    Source(Error),
    #[error("the target: {0}")]
    Target(Error),
    /// The target has entries, and they are not those of an unfinished copy.
    #[error("the target is not empty")]
    NotEmpty,
    /// The target holds the unfinished copy of another source.
    #[error("the target holds an unfinished copy of {from}")]
    OtherCopy { from: String },
    /// What was read back is not what was written.
    #[error(
        "the target does not return what was written to it: {what} (checksum {expected:032x}, read back {found:032x})"
    )]
    Differs { what: String, expected: u128, found: u128 },
    /// What has changed since the copy began is not known.
    #[error("{0}")]
    ChangesLost(String),
    /// Changes arrive faster than they can be copied.
    #[error("the source changes faster than the target takes the changes: {left} are left")]
    TooFast { left: usize },
}

/// What there is to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amount {
    pub rows: u64,
    /// The bytes of keys and values.
    pub bytes: u64,
}

/// Counts the entries of a store by reading all of them. An entry that can't be read is found before
/// anything is copied.
pub async fn measure(source: &dyn Store) -> CopyResult<Amount> {
    let mut amount = Amount::default();
    for territory in territories() {
        let mut visit = |key: &[u8], value: &[u8]| {
            amount.rows += 1;
            amount.bytes += (key.len() + value.len()) as u64;
            ControlFlow::Continue(())
        };
        let scanned = source.scan(territory, Direction::Forward, &mut visit).await;
        scanned.map_err(CopyError::Source)?;
    }
    Ok(amount)
}

/// All keys but those of this module.
fn territories() -> [KeyRange; 2] {
    let behind = prefix_end(RESERVED).expect("there are keys behind this prefix");
    [KeyRange::new(Key::new(), RESERVED), KeyRange { start: behind, end: None }]
}

/// The first key behind this one.
fn successor(key: &[u8]) -> Key {
    [key, &[0]].concat().into()
}

/// Whether there is anything in a store that a copy would have to keep.
async fn is_empty(store: &dyn Store) -> crate::Result<bool> {
    for territory in territories() {
        if !is_range_empty(store, territory).await? {
            return Ok(false);
        }
    }
    Ok(store.log_ends(&[], 1).await?.is_empty())
}

async fn is_range_empty(reader: &dyn Reader, range: KeyRange) -> crate::Result<bool> {
    let mut is_empty = true;
    let mut visit = |_: &[u8], _: &[u8]| {
        is_empty = false;
        ControlFlow::Break(())
    };
    reader.scan_then_get(range, Direction::Forward, Some(1), &mut visit, &[]).await?;
    Ok(is_empty)
}
