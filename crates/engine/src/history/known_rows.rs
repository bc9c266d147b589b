//! Where images of the past were found: the stamps of undo rows, for items and times that were read before.
//!
//! The undo rows of an item were written at different times, so a store like RocksDB has them in different files, and has to
//! look into all of them to find the first row after a stamp. A row whose stamp is known is read like an item: filters
//! tell where it is not, and the store's cache may have it.
//!
//! What is remembered here is never wrong, even if others write to the store. A row does not change, and every later row of
//! the table has a greater stamp ([`zenobe_store::stamp`]), so the first row after a stamp stays the first one. If it has been
//! deleted, the point read finds nothing, and the reader looks for a row as if nothing were known. That an item has no row
//! after a stamp is not remembered, because its next change writes one.

use std::sync::OnceLock;

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_128_with_seed;
use zenobe_store::Stamp;

/// 262,144 rows in 6.5 MiB, from the first read of the past on.
const SETS: usize = 1 << 15;
const ROWS_PER_SET: usize = 8;

pub(crate) struct KnownRows {
    /// Secret, so that nobody can choose keys whose names are equal.
    seed: u64,
    sets: OnceLock<Box<[Mutex<Set>]>>,
}

/// Rows whose names fall into the same place. A new one replaces the oldest.
#[derive(Default)]
struct Set {
    rows: [KnownRow; ROWS_PER_SET],
    oldest: u8,
}

/// An item and a time, by a hash of 128 bits, and the row that was found.
#[derive(Clone, Copy, Default)]
struct KnownRow {
    name: [u64; 2],
    stamp: Stamp,
}

impl KnownRows {
    pub fn new(seed: u64) -> KnownRows {
        KnownRows { seed, sets: OnceLock::new() }
    }

    /// The stamp of the first row at or after the key of an item's undo rows with a stamp, if it is known.
    pub fn get(&self, from: &[u8]) -> Option<Stamp> {
        let name = self.name(from);
        let set = self.sets.get()?[place(name)].lock();
        set.rows.iter().find(|row| row.name == name).map(|row| row.stamp)
    }

    /// Remembers the stamp of the first row at or after such a key.
    pub fn insert(&self, from: &[u8], stamp: Stamp) {
        let name = self.name(from);
        let sets = self.sets.get_or_init(|| (0..SETS).map(|_| Mutex::default()).collect());
        let mut set = sets[place(name)].lock();
        let at = match set.rows.iter().position(|row| row.name == name) {
            Some(known) => known,
            None => {
                let oldest = usize::from(set.oldest);
                set.oldest = ((oldest + 1) % ROWS_PER_SET) as u8;
                oldest
            }
        };
        set.rows[at] = KnownRow { name, stamp };
    }

    fn name(&self, from: &[u8]) -> [u64; 2] {
        let hash = xxh3_128_with_seed(from, self.seed);
        [hash as u64, (hash >> 64) as u64]
    }
}

fn place(name: [u64; 2]) -> usize {
    name[0] as usize % SETS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rows_are_known() {
        let known = KnownRows::new(7);
        let key = |number: usize| number.to_be_bytes();
        let stamp = |number: usize| Stamp::from_bits(number as u64);
        assert_eq!(known.get(&key(1)), None);
        known.insert(&key(1), stamp(1));
        known.insert(&key(1), stamp(2));
        assert_eq!(known.get(&key(1)), Some(stamp(2)));
        assert_eq!(known.get(&key(2)), None);
        let rows = 2 * SETS * ROWS_PER_SET;
        (0..rows).for_each(|number| known.insert(&key(number), stamp(number)));
        let kept = |number: &usize| known.get(&key(*number)).is_some();
        assert!(
            (0..rows).all(|number| known.get(&key(number)).is_none_or(|it| it == stamp(number)))
        );
        assert!((0..rows).filter(kept).count() <= SETS * ROWS_PER_SET);
        assert!((rows - SETS / 4..rows).all(|number| kept(&number)), "the newest go last");
    }
}
