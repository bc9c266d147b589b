//! Locks on keys, for the moment in which a write reads, decides and takes its place in the commit order.
//!
//! Keys share a fixed number of stripes. A write takes its stripes in ascending order, so no two writes can
//! wait for each other in a circle, and it never awaits anything while it holds them.

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
        let guards = set.guards.iter().map(|key| Wanted { stripe: stripe(key), shared: true });
        let keys = set.keys.iter().map(|key| Wanted { stripe: stripe(key), shared: false });
        let mut wanted: Vec<Wanted> = guards.chain(keys).collect();
        // Exclusive comes before shared within a stripe, and is what remains.
        wanted.sort_unstable();
        wanted.dedup_by_key(|wanted| wanted.stripe);
        let stripes = wanted.into_iter().map(|wanted| {
            let lock = &self.stripes[wanted.stripe];
            match wanted.shared {
                true => HeldStripe::Shared(lock.read()),
                false => HeldStripe::Exclusive(lock.write()),
            }
        });
        HeldLocks { _stripes: stripes.collect() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wanted {
    stripe: usize,
    shared: bool,
}

fn stripe(key: &[u8]) -> usize {
    xxh3_64(key) as usize % STRIPES
}
