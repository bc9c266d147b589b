//! Which times of a table's past can be read and restored.

use crate::error::{HistoryError, Result};
use crate::schema::HistorySettings;

use super::{AsOf, retention};

/// The times that can be restored, in milliseconds since the epoch. They are whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryWindow {
    pub earliest_ms: u64,
    pub latest_ms: u64,
    /// Where the history begins, within the earliest second. The end of that second can be read, but nothing before the history begins.
    pub(crate) begins_ms: u64,
}

impl RecoveryWindow {
    /// `lag_ms` is how far the latest time is in the past.
    pub(crate) fn new(settings: &HistorySettings, now_ms: u64, lag_ms: u64) -> RecoveryWindow {
        let earliest_ms =
            settings.since_ms.max(retention::horizon_ms(settings.period_days, now_ms));
        let latest_ms = settings.since_ms.max(now_ms.saturating_sub(lag_ms));
        let whole_second = |ms: u64| ms / 1_000 * 1_000;
        RecoveryWindow {
            earliest_ms: whole_second(earliest_ms),
            latest_ms: whole_second(latest_ms),
            begins_ms: earliest_ms,
        }
    }

    /// Whether a time lies within.
    pub(crate) fn check(&self, as_of: AsOf) -> Result<(), HistoryError> {
        let RecoveryWindow { earliest_ms, latest_ms, begins_ms } = *self;
        let at_ms = as_of.at_ms();
        if (begins_ms..latest_ms + 1_000).contains(&at_ms) {
            return Ok(());
        }
        // Within the earliest second, all of the next one is what can be named for sure.
        let is_early = (earliest_ms..begins_ms).contains(&at_ms);
        let earliest_ms = if is_early { earliest_ms + 1_000 } else { earliest_ms };
        Err(HistoryError::OutsideWindow { at_ms, earliest_ms, latest_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::super::DAY_MS;
    use super::*;

    #[test]
    fn the_window_is_the_period_or_since_it_was_switched_on() {
        let settings = HistorySettings { era: 1, since_ms: 10 * DAY_MS + 700, period_days: 2 };
        let window = |now_ms, lag_ms| RecoveryWindow::new(&settings, now_ms, lag_ms);
        let young = window(11 * DAY_MS, 0);
        assert_eq!((young.earliest_ms, young.latest_ms), (10 * DAY_MS, 11 * DAY_MS));
        let old = window(20 * DAY_MS + 999, 300_000);
        assert_eq!((old.earliest_ms, old.latest_ms), (18 * DAY_MS, 20 * DAY_MS - 300_000));
        // The latest time is never before the earliest.
        let new = window(10 * DAY_MS + 800, 300_000);
        assert_eq!((new.earliest_ms, new.latest_ms), (10 * DAY_MS, 10 * DAY_MS));
        assert!(new.check(AsOf::second(10 * DAY_MS / 1_000)).is_ok());
        assert!(new.check(AsOf::ms(10 * DAY_MS + 700)).is_ok());
        assert!(new.check(AsOf::ms(10 * DAY_MS + 699)).is_err());
        assert!(new.check(AsOf::ms(10 * DAY_MS + 1_000)).is_err());
        assert!(new.check(AsOf::ms(10 * DAY_MS - 1)).is_err());
    }
}
