//! Injected time: tests can drive everything that depends on it (expiry, daily budgets, labels).

use std::sync::atomic::{AtomicU64, Ordering};

use time::{OffsetDateTime, PrimitiveDateTime};

pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> u64;

    /// Whether somebody moves this clock on purpose, so that a jump is never a mistake.
    fn is_driven(&self) -> bool {
        false
    }
}

/// The date and time of a clock's milliseconds. A driven clock may show any number; times beyond
/// the calendar become its last moment.
pub fn utc(at_ms: u64) -> OffsetDateTime {
    let end = PrimitiveDateTime::MAX.assume_utc();
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(at_ms) * 1_000_000).unwrap_or(end)
}

/// The date and time to the millisecond in ISO 8601 form, in UTC without a zone:
/// `2026-10-09T05:53:25.330`.
pub fn iso8601_without_zone(at_ms: u64) -> String {
    let at = utc(at_ms);
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second, millisecond) = at.time().as_hms_milli();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}")
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        zenobe_store::system_time_ms()
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ms: AtomicU64,
}

impl ManualClock {
    pub fn new(now_ms: u64) -> ManualClock {
        ManualClock { now_ms: AtomicU64::new(now_ms) }
    }

    pub fn set_ms(&self, now_ms: u64) {
        self.now_ms.store(now_ms, Ordering::SeqCst);
    }

    pub fn advance_ms(&self, by_ms: u64) {
        self.now_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn is_driven(&self) -> bool {
        true
    }
}
