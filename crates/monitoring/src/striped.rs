//! A value for each thread that serves requests, so that counting does not make the threads wait for
//! each other or pass cache lines around.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// More threads than this share values.
const STRIPES_MAX: usize = 16;

pub struct Striped<T>(Vec<Stripe<T>>);

/// Keeps the values of different threads on different cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Stripe<T>(Mutex<T>);

impl<T: Default> Default for Striped<T> {
    fn default() -> Striped<T> {
        // As many as the server has workers.
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let stripes = threads.next_power_of_two().min(STRIPES_MAX);
        Striped((0..stripes).map(|_| Stripe::default()).collect())
    }
}

impl<T> Striped<T> {
    /// The value of this thread. Its lock is uncontended unless somebody collects the values.
    pub fn local(&self) -> MutexGuard<'_, T> {
        self.0[thread_number() % self.0.len()].0.lock()
    }

    /// Every thread's value, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(|stripe| stripe.0.lock())
    }
}

/// Numbers threads in the order of their first request.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    const UNKNOWN: usize = usize::MAX;
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
    }
    match NUMBER.get() {
        UNKNOWN => {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            NUMBER.set(number);
            number
        }
        number => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_any_thread_adds_is_lost() {
        let striped = Striped::<u64>::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * STRIPES_MAX {
                scope.spawn(|| (0..1_000).for_each(|_| *striped.local() += 1));
            }
        });
        assert_eq!(striped.iter().map(|it| *it).sum::<u64>(), 2_000 * STRIPES_MAX as u64);
    }
}
