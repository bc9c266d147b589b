//! The lock that makes a leader. Its holder learns, when it unlocks, whether somebody gave up on it meanwhile.

use std::sync::atomic::{AtomicBool, Ordering, fence};

use parking_lot::{Mutex, MutexGuard};

#[derive(Default)]
pub(crate) struct LeaderLock<T> {
    value: Mutex<T>,
    /// Whether somebody found the lock taken and gave up.
    is_wanted: AtomicBool,
}

impl<T> LeaderLock<T> {
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock()
    }

    /// If this is `None`, then [`LeaderLock::unlock`] says `true` to whoever holds the lock.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.value.try_lock().or_else(|| {
            self.is_wanted.store(true, Ordering::Relaxed);
            // Either this finds the lock free, or whoever unlocks it finds that it is wanted.
            fence(Ordering::SeqCst);
            let guard = self.value.try_lock()?;
            // Whoever else gave up has queued its write by now, so this leader commits it.
            self.is_wanted.store(false, Ordering::Relaxed);
            Some(guard)
        })
    }

    /// Whether somebody gave up on the lock while it was held. Every guard must be given back here, not dropped.
    pub fn unlock(&self, guard: MutexGuard<'_, T>) -> bool {
        drop(guard);
        fence(Ordering::SeqCst);
        self.is_wanted.swap(false, Ordering::Relaxed)
    }
}
