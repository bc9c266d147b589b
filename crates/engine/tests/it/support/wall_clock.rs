//! A clock that is not driven: the engine checks it for jumps.

use std::sync::atomic::{AtomicU64, Ordering};

use zenobe_engine::clock::Clock;

pub struct WallClock(AtomicU64);

impl WallClock {
    pub fn new(now_ms: u64) -> WallClock {
        WallClock(AtomicU64::new(now_ms))
    }

    pub fn set(&self, to_ms: u64) {
        self.0.store(to_ms, Ordering::SeqCst);
    }
}

impl Clock for WallClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
