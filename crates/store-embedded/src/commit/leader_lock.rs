//! The lock that makes a leader. When its holder unlocks it, it learns whether another write tried to lead meanwhile.

use std::sync::atomic::{AtomicBool, Ordering, fence};

use parking_lot::{Mutex, MutexGuard};

#[derive(Default)]
pub(crate) struct LeaderLock<T> {
    value: Mutex<T>,
    /// Whether a write found the lock taken.
    is_wanted: AtomicBool,
}

impl<T> LeaderLock<T> {
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock()
    }

    /// If this is `None`, [`LeaderLock::unlock`] returns `true` to the lock's holder.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.value.try_lock().or_else(|| {
            self.is_wanted.store(true, Ordering::Relaxed);
            // Either this finds the lock free, or its holder finds the flag set when it unlocks.
            fence(Ordering::SeqCst);
            let guard = self.value.try_lock()?;
            // Every write that found the lock taken has already been queued, so this leader commits it.
            self.is_wanted.store(false, Ordering::Relaxed);
            Some(guard)
        })
    }

    /// Returns whether a write found the lock taken while it was held: it did not lead, so the commit
    /// thread must be woken for it. Every guard must be returned here, not dropped.
    pub fn unlock(&self, guard: MutexGuard<'_, T>) -> bool {
        drop(guard);
        fence(Ordering::SeqCst);
        self.is_wanted.swap(false, Ordering::Relaxed)
    }
}
