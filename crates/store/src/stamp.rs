//! Commit stamps: times in the commit order, which never run backwards.
//!
//! A clock of the store is named by a key, like a log. Each batch that carries stamps of a clock gets a greater stamp than
//! every batch of that clock before it, in the commit order, whichever node wrote it and whatever its wall clock shows. So
//! "everything up to this stamp" is one state of what the clock stamps.
//!
//! A stamp is close to wall-clock time, but not guaranteed to equal it: its writer read the time before the commit. To read the state at a
//! time, [advance](Mutation::Advance) the clock to that time first. What is committed afterwards has a greater stamp.

use crate::{Batch, Key, LogEnd, Mutation, Value};

/// Milliseconds since the epoch in 47 bits below the sign bit, and a counter in the 16 bits below it, for batches of the same millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stamp(u64);

const COUNTER_BITS: u32 = 16;

/// The latest time that a stamp can name, in the year 6429. Stamps fit into 63 bits, because a backend may have signed numbers only.
const AT_MS_MAX: u64 = (1 << (63 - COUNTER_BITS)) - 1;

impl Stamp {
    /// In a key, a stamp takes this many bytes.
    pub const LENGTH: usize = size_of::<u64>();

    /// The first stamp of a millisecond.
    pub fn first_of_ms(at_ms: u64) -> Stamp {
        Stamp(at_ms.min(AT_MS_MAX) << COUNTER_BITS)
    }

    /// The last stamp of a millisecond.
    pub fn last_of_ms(at_ms: u64) -> Stamp {
        Stamp(Stamp::first_of_ms(at_ms).0 | ((1 << COUNTER_BITS) - 1))
    }

    pub fn at_ms(self) -> u64 {
        self.0 >> COUNTER_BITS
    }

    /// The stamp after this one.
    #[must_use]
    pub fn next(self) -> Stamp {
        Stamp(self.0.saturating_add(1))
    }

    pub fn to_bits(self) -> u64 {
        self.0
    }

    pub fn from_bits(bits: u64) -> Stamp {
        Stamp(bits)
    }
}

/// A put whose key ends with its batch's stamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StampedPut {
    pub clock: Key,
    /// The writer's time, in milliseconds since the epoch. The stamp is not earlier.
    pub at_ms: u64,
    /// The key before the stamp.
    pub key: Key,
    pub value: Value,
}

impl Batch {
    /// Puts `value` at `key` followed by the batch's stamp ([`Mutation::PutStamped`]).
    pub fn put_stamped(
        &mut self,
        clock: impl Into<Key>,
        at_ms: u64,
        key: impl Into<Key>,
        value: impl Into<Value>,
    ) {
        let put = StampedPut { clock: clock.into(), at_ms, key: key.into(), value: value.into() };
        self.mutations.push(Mutation::PutStamped(Box::new(put)));
    }

    /// Advances a clock ([`Mutation::Advance`]).
    pub fn advance(&mut self, clock: impl Into<Key>, to: Stamp) {
        self.mutations.push(Mutation::Advance { clock: clock.into(), to });
    }
}

/// The stamp of a batch with these stamped puts, given what each of its clocks shows. It is greater than all of them, and the
/// batch sets all of them to it. Every backend stamps with this.
///
/// # Errors
/// Those of `read`.
pub fn stamp_of<'a, E>(
    puts: impl IntoIterator<Item = &'a StampedPut>,
    mut read: impl FnMut(&Key) -> Result<Stamp, E>,
) -> Result<Stamp, E> {
    let mut stamp = Stamp::default();
    for put in puts {
        stamp = stamp.max(read(&put.clock)?.next()).max(Stamp::first_of_ms(put.at_ms));
    }
    Ok(stamp)
}

/// The stamped puts among mutations.
pub fn stamped_puts(mutations: &[Mutation]) -> impl Iterator<Item = &StampedPut> {
    mutations.iter().filter_map(|mutation| match mutation {
        Mutation::PutStamped(put) => Some(&**put),
        _ => None,
    })
}

/// A key with its stamp: 8 bytes, big-endian.
pub fn stamped_key(key: &[u8], stamp: Stamp) -> Key {
    [key, &stamp.0.to_be_bytes()].concat().into()
}

/// The parts of a key made by [`stamped_key`], if it is long enough.
pub fn parts_of_stamped_key(key: &[u8]) -> Option<(&[u8], Stamp)> {
    let (key, stamp) = key.split_last_chunk()?;
    Some((key, Stamp(u64::from_be_bytes(*stamp))))
}

impl LogEnd {
    /// What a clock shows. Backends keep clocks where they keep the ends of logs: a clock is a log that only has a stamp.
    pub fn clock(self) -> Stamp {
        Stamp(self.stamp)
    }

    /// A clock that has been advanced.
    #[must_use]
    pub fn advance(self, to: Stamp) -> LogEnd {
        LogEnd { stamp: self.stamp.max(to.0), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_a_time_and_a_counter() {
        let (first, last) = (Stamp::first_of_ms(7), Stamp::last_of_ms(7));
        assert!(first < first.next() && first.next() < last);
        assert_eq!((first.at_ms(), last.at_ms(), last.next()), (7, 7, Stamp::first_of_ms(8)));
        assert_eq!(Stamp::last_of_ms(u64::MAX).to_bits(), i64::MAX as u64);
        let key = stamped_key(b"key", last);
        assert_eq!(parts_of_stamped_key(&key), Some((&b"key"[..], last)));
        assert_eq!(parts_of_stamped_key(b"short"), None);
    }

    #[test]
    fn a_batch_is_after_all_its_clocks() {
        let mut batch = Batch::new();
        batch.put_stamped("a", 5, "k", "v");
        batch.put_stamped("b", 3, "k", "v");
        batch.delete("x");
        let stamp = |a: u64, b: u64| {
            let read =
                |clock: &Key| Ok::<_, ()>(Stamp::first_of_ms(if clock == "a" { a } else { b }));
            stamp_of(stamped_puts(&batch.mutations), read).unwrap()
        };
        assert_eq!(stamp(1, 2), Stamp::first_of_ms(5));
        assert_eq!(stamp(1, 9), Stamp::first_of_ms(9).next());
        assert_eq!(stamp(5, 5), Stamp::first_of_ms(5).next());
    }
}
