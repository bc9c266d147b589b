//! Work of which a database does one at a time.

use std::sync::atomic::{AtomicBool, Ordering};

/// Keeps the flag set while the work runs.
pub(crate) struct Exclusive<'a>(&'a AtomicBool);

impl<'a> Exclusive<'a> {
    /// `None` while the same work is running already.
    pub fn begin(is_running: &'a AtomicBool) -> Option<Exclusive<'a>> {
        match is_running.swap(true, Ordering::SeqCst) {
            true => None,
            false => Some(Exclusive(is_running)),
        }
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_begins_again_once_it_has_ended() {
        let is_running = AtomicBool::new(false);
        let running = Exclusive::begin(&is_running);
        assert!(running.is_some());
        assert!(Exclusive::begin(&is_running).is_none());
        // The refusal has not ended the work.
        assert!(Exclusive::begin(&is_running).is_none());
        drop(running);
        assert!(Exclusive::begin(&is_running).is_some());
    }
}
