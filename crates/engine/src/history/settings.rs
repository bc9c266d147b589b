//! UpdateContinuousBackups and DescribeContinuousBackups.

use zenobe_store::{Key, Stamp, Value, decode_counter};

use crate::Engine;
use crate::catalog::edit::Edit;
use crate::command::TableName;
use crate::error::Result;
use crate::keyspace;
use crate::lease::Lease;
use crate::schema::{HistorySettings, TableDefinition, TableId};

use super::era::open_era;
use super::{RecoveryWindow, retention};

/// The period of those who don't choose one, and the longest.
pub const PERIOD_DAYS_MAX: u32 = 35;

/// How much history a table has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistorySize {
    pub table: TableName,
    /// `None` if recovery is off, and only backups that are being copied need it.
    pub period_days: Option<u32>,
    /// Earlier versions of items.
    pub versions: u64,
    pub size_bytes: u64,
}

/// What DescribeContinuousBackups shows; nothing while point-in-time recovery is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContinuousBackups {
    pub period_days: u32,
    pub window: RecoveryWindow,
}

impl Engine {
    pub async fn describe_continuous_backups(
        &self,
        name: &TableName,
    ) -> Result<Option<ContinuousBackups>> {
        let table = self.current_table(name).await?;
        Ok(table.definition().history.as_ref().map(|settings| self.continuous_backups(settings)))
    }

    /// Switches point-in-time recovery on or off, or changes its period (in days).
    pub async fn update_continuous_backups(
        &self,
        name: &TableName,
        enabled: bool,
        period_days: Option<u32>,
    ) -> Result<Option<ContinuousBackups>> {
        let decide = |before: &TableDefinition, _: &[Option<Value>]| {
            // Under the lock: until now, changes left no undo rows.
            let now_ms = self.trusted_clock.read().plausible_ms;
            let mut edit = Edit::new(before.clone());
            match (&before.history, enabled) {
                (None, true) => switch_on(&mut edit, period_days, now_ms),
                (Some(settings), true) => {
                    let settings = with_period(*settings, period_days, now_ms);
                    edit.definition.history = Some(settings);
                }
                (Some(settings), false) => {
                    edit.definition.history = None;
                    self.end_unused_era(&mut edit, settings.era);
                }
                (None, false) => {}
            }
            Ok(edit)
        };
        // Trimming reads and writes this row.
        let also = |id: TableId| -> Vec<Key> { vec![keyspace::trim_progress(id)] };
        let nobodys = Lease::default();
        let changed = self.catalog.change_under(&*self.store, name, &nobodys, also, decide).await?;
        self.background.wake();
        let after = changed.after.definition();
        Ok(after.history.as_ref().map(|settings| self.continuous_backups(settings)))
    }

    /// The sizes of all histories, by table.
    pub async fn history_sizes(&self) -> Result<Vec<HistorySize>> {
        let tables = self.catalog.tables();
        let with_history = tables.values().filter_map(|table| {
            let settings = table.definition().history.as_ref();
            Some((table.name(), settings, table.history()?))
        });
        let mut with_history: Vec<_> = with_history.collect();
        with_history.sort_by_key(|(name, ..)| *name);
        let keys =
            with_history.iter().flat_map(|(_, _, history)| [&history.count, &history.size_bytes]);
        let keys: Vec<Key> = keys.cloned().collect();
        let counters = self.store.get_many(&keys).await?;
        let mut counters = counters.iter().map(|counter| -> Result<u64> {
            Ok(u64::try_from(decode_counter(counter.as_deref())?).unwrap_or(0))
        });
        let mut next = || counters.next().unwrap_or(Ok(0));
        let mut sizes = Vec::with_capacity(with_history.len());
        for (name, settings, _) in with_history {
            sizes.push(HistorySize {
                table: name.clone(),
                period_days: settings.map(|settings| settings.period_days),
                versions: next()?,
                size_bytes: next()?,
            });
        }
        Ok(sizes)
    }

    fn continuous_backups(&self, settings: &HistorySettings) -> ContinuousBackups {
        ContinuousBackups {
            period_days: settings.period_days,
            window: self.restorable_window(settings),
        }
    }

    /// The times that a restore can name.
    pub(crate) fn restorable_window(&self, settings: &HistorySettings) -> RecoveryWindow {
        RecoveryWindow::new(
            settings,
            self.trusted_clock.read().plausible_ms,
            self.restorable_lag_ms,
        )
    }
}

fn switch_on(edit: &mut Edit, period_days: Option<u32>, now_ms: u64) {
    let definition = &mut edit.definition;
    definition.history = Some(HistorySettings {
        era: open_era(definition),
        since_ms: now_ms,
        period_days: period_days.unwrap_or(PERIOD_DAYS_MAX),
    });
    let clock = keyspace::undo_rows_prefix(definition.id);
    edit.batch.advance(clock, Stamp::first_of_ms(now_ms));
}

/// The settings with another period. What the old period did not cover is gone, however long the new one is.
fn with_period(
    settings: HistorySettings,
    period_days: Option<u32>,
    now_ms: u64,
) -> HistorySettings {
    let Some(period_days) = period_days else { return settings };
    let covered_days = settings.period_days.min(period_days);
    let since_ms = settings.since_ms.max(retention::horizon_ms(covered_days, now_ms));
    HistorySettings { period_days, since_ms, ..settings }
}

#[cfg(test)]
mod tests {
    use super::super::DAY_MS;
    use super::*;

    #[test]
    fn a_longer_period_does_not_bring_back_what_was_trimmed() {
        let settings = HistorySettings { era: 1, since_ms: DAY_MS, period_days: 35 };
        let now_ms = 100 * DAY_MS;
        assert_eq!(with_period(settings, None, now_ms), settings);
        let short = with_period(settings, Some(1), now_ms);
        assert_eq!((short.period_days, short.since_ms), (1, 99 * DAY_MS));
        let long = with_period(short, Some(35), now_ms + DAY_MS);
        assert_eq!((long.period_days, long.since_ms), (35, 100 * DAY_MS));
    }
}
