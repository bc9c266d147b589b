//! Waits for events in other threads and processes. This is the only place where tests sleep.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long an event may take on a busy machine, if it should happen at once.
pub const PATIENCE: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Polls until there is a result; `None` if there is none in this time.
pub fn wait_for<T>(patience: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + patience;
    loop {
        let is_last = Instant::now() >= deadline;
        match ask() {
            None if !is_last => thread::sleep(POLL_INTERVAL),
            answer => return answer,
        }
    }
}

/// Waits until a condition holds.
///
/// # Panics
/// If it does not within [`PATIENCE`].
#[track_caller]
pub fn wait_until(mut condition: impl FnMut() -> bool) {
    let held = wait_for(PATIENCE, || condition().then_some(()));
    assert!(held.is_some(), "it never happens");
}

/// Sets a flag when it is dropped, even by a panic: the threads of a scope that run until then would be waited for without end.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_until_there_is_an_answer_and_at_least_once() {
        let mut asked = 0;
        wait_until(|| {
            asked += 1;
            asked == 3
        });
        assert_eq!(wait_for(Duration::ZERO, || Some(asked)), Some(3));
        assert_eq!(wait_for(Duration::ZERO, || None::<()>), None);
    }
}
