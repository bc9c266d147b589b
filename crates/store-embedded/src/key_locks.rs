//! Locks on keys, for the moment in which a write reads, decides and takes its place in the commit order.
//!
//! Keys share a fixed number of stripes. A write locks its stripes in ascending order, so writes cannot deadlock. It
//! awaits nothing while it holds them.

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use xxhash_rust::xxh3::xxh3_64;
use zenobe_store::WriteSet;

const STRIPES: usize = 4096;

pub(crate) struct KeyLocks {
    stripes: Box<[RwLock<()>]>,
}

/// Releases the stripes when dropped.
pub(crate) struct HeldLocks<'a> {
    _stripes: Vec<HeldStripe<'a>>,
}

enum HeldStripe<'a> {
    Shared(#[allow(dead_code)] RwLockReadGuard<'a, ()>),
    Exclusive(#[allow(dead_code)] RwLockWriteGuard<'a, ()>),
}

impl KeyLocks {
    pub fn new() -> KeyLocks {
        KeyLocks { stripes: (0..STRIPES).map(|_| RwLock::new(())).collect() }
    }

    /// Locks the guards shared and the keys exclusively. A stripe that holds both is locked exclusively.
    pub fn lock(&self, set: WriteSet<'_>) -> HeldLocks<'_> {
        let stripes = wanted(set).map(|wanted| {
            let lock = &self.stripes[wanted.stripe];
            match wanted.shared {
                true => HeldStripe::Shared(lock.read()),
                false => HeldStripe::Exclusive(lock.write()),
            }
        });
        HeldLocks { _stripes: stripes.collect() }
    }

    /// Like [`KeyLocks::lock`], or `None` where that would wait.
    #[cfg(test)]
    fn try_lock(&self, set: WriteSet<'_>) -> Option<HeldLocks<'_>> {
        let stripes = wanted(set).map(|wanted| {
            let lock = &self.stripes[wanted.stripe];
            match wanted.shared {
                true => lock.try_read().map(HeldStripe::Shared),
                false => lock.try_write().map(HeldStripe::Exclusive),
            }
        });
        Some(HeldLocks { _stripes: stripes.collect::<Option<_>>()? })
    }
}

/// The stripes to lock, in ascending order.
fn wanted(set: WriteSet<'_>) -> impl Iterator<Item = Wanted> {
    let guards = set.guards.iter().map(|key| Wanted { stripe: stripe(key), shared: true });
    let keys = set.keys.iter().map(|key| Wanted { stripe: stripe(key), shared: false });
    let mut wanted: Vec<Wanted> = guards.chain(keys).collect();
    // Exclusive comes before shared within a stripe, and is what remains.
    wanted.sort_unstable();
    wanted.dedup_by_key(|wanted| wanted.stripe);
    wanted.into_iter()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wanted {
    stripe: usize,
    shared: bool,
}

fn stripe(key: &[u8]) -> usize {
    xxh3_64(key) as usize % STRIPES
}

#[cfg(test)]
mod tests {
    use super::KeyLocks;
    use zenobe_store::{Key, WriteSet};

    #[test]
    fn only_writes_that_cannot_meet_are_decided_side_by_side() {
        let [a, b, guard] = ["a", "b", "guard"].map(Key::from);
        let (a, b, guard) = (&[a][..], &[b][..], &[guard][..]);
        let none: &[Key] = &[];
        let cases = [
            ("other keys", (none, a), (none, b), true),
            ("a shared guard", (guard, a), (guard, b), true),
            ("only a guard", (guard, none), (guard, none), true),
            ("the same key", (none, a), (none, a), false),
            ("a guard that the other writes", (guard, a), (none, guard), false),
            ("a key that guards the other", (none, guard), (guard, b), false),
            ("a key that is its own guard", (a, a), (a, none), false),
        ];
        for (name, first, second, expected) in cases {
            let locks = KeyLocks::new();
            let [first, second] = [first, second].map(|(guards, keys)| WriteSet { guards, keys });
            let held = locks.lock(first);
            assert_eq!(locks.try_lock(second).is_some(), expected, "{name}");
            drop(held);
            assert!(locks.try_lock(second).is_some(), "{name}: afterwards");
        }
    }
}
