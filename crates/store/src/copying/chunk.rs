//! A range that is copied at once, and its checksum.

use std::ops::ControlFlow;

use xxhash_rust::xxh3::Xxh3;

use super::successor;
use crate::{Direction, Key, KeyRange, Reader, Result, Value};

/// Entries of any size: a range of small ones ends by their number.
const ROWS_MAX: usize = 10_000;

pub(super) struct Chunk {
    /// All of the source's entries in this range are in the chunk.
    pub range: KeyRange,
    pub entries: Vec<(Key, Value)>,
    pub size_bytes: usize,
    pub checksum: u128,
}

/// Of entries in their order. Each is preceded by its lengths, so that no two sequences look alike.
#[derive(Default)]
pub(super) struct RangeChecksum(Xxh3);

impl RangeChecksum {
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.0.update(&(key.len() as u64).to_be_bytes());
        self.0.update(&(value.len() as u64).to_be_bytes());
        self.0.update(key);
        self.0.update(value);
    }

    pub fn get(&self) -> u128 {
        self.0.digest128()
    }
}

impl Chunk {
    /// Reads the first entries of a range: `bytes_max` bytes of them, or one more.
    pub async fn read(reader: &dyn Reader, range: KeyRange, bytes_max: usize) -> Result<Chunk> {
        let mut entries: Vec<(Key, Value)> = Vec::new();
        let mut size_bytes = 0;
        let mut is_full = false;
        let mut checksum = RangeChecksum::default();
        let mut visit = |key: &[u8], value: &[u8]| {
            checksum.add(key, value);
            size_bytes += key.len() + value.len();
            entries.push((Key::copy_from_slice(key), Value::copy_from_slice(value)));
            is_full = size_bytes >= bytes_max || entries.len() >= ROWS_MAX;
            if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        reader.scan(range.clone(), Direction::Forward, &mut visit).await?;
        let last = entries.last().filter(|_| is_full).map(|(key, _)| successor(key));
        let range = KeyRange { start: range.start, end: last.or(range.end) };
        Ok(Chunk { range, entries, size_bytes, checksum: checksum.get() })
    }
}

/// The checksum of a range, and whether there is anything in it.
pub(super) async fn checksum(reader: &dyn Reader, range: KeyRange) -> Result<(u128, bool)> {
    let mut checksum = RangeChecksum::default();
    let mut is_empty = true;
    let mut visit = |key: &[u8], value: &[u8]| {
        is_empty = false;
        checksum.add(key, value);
        ControlFlow::Continue(())
    };
    reader.scan(range, Direction::Forward, &mut visit).await?;
    Ok((checksum.get(), is_empty))
}
