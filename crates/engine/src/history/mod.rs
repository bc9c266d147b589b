//! Point-in-time recovery: a table's past, kept by every change and read as of a time.
//!
//! While it is on, [`crate::change`] writes an undo row with each change. The rest is here: switching it on and off
//! ([`settings`]), which times can be read ([`recovery_window`]), reading the past ([`past`], [`known_rows`], [`walk`]),
//! what changed between two times ([`changes`]), one item's versions ([`versions`]), and trimming what is older than the
//! period ([`trim`]). Backups that are being copied need undo rows too ([`crate::backups`]), even if recovery is off; both
//! share an era ([`era`]).
//!
//! **Stamps.** Undo rows carry the store's commit stamps ([`zenobe_store::stamp`]), so "everything up to a stamp" is one state
//! of the table. A stamp's time is what its writer's clock showed before the commit, so changes with an earlier stamp may
//! still be in flight when a request asks for a time. Therefore a read first advances the table's clock to that time
//! ([`Engine::pass`]): everything that is committed afterwards gets a later stamp. So reads as of one time always see one state.
//!
//! Stamps never go back, so a stamp of the future would hide all later changes from reads as of their own time. Therefore
//! writers and readers use the trusted clock's [plausible time](crate::trusted_clock::Moment::plausible_ms) here.

mod changes;
pub(crate) mod era;
mod known_rows;
mod past;
mod recovery_window;
mod retention;
pub(crate) mod settings;
mod trim;
mod versions;
mod walk;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use zenobe_store::{Batch, WriteSet, write_with};

use crate::Engine;
use crate::catalog::{HistoryKeys, Table};
use crate::error::{Error, HistoryError, Result};

pub(crate) use changes::Changes;
pub use changes::ItemChange;
pub(crate) use known_rows::KnownRows;
pub(crate) use past::Past;
pub use recovery_window::RecoveryWindow;
pub use settings::{ContinuousBackups, HistorySize};
pub(crate) use trim::trim_all;
pub use versions::{ItemHistory, Version};
pub(crate) use walk::Walk;
pub use zenobe_store::Stamp;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// A moment in the past, to the millisecond: everything that was committed up to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AsOf {
    at_ms: u64,
}

impl AsOf {
    pub fn ms(at_ms: u64) -> AsOf {
        AsOf { at_ms }
    }

    /// A whole second: everything that was committed up to its end.
    pub fn second(second: u64) -> AsOf {
        AsOf { at_ms: second.saturating_mul(1_000).saturating_add(999) }
    }

    /// Its last millisecond.
    pub fn at_ms(self) -> u64 {
        self.at_ms
    }

    pub(crate) fn stamp(self) -> Stamp {
        Stamp::last_of_ms(self.at_ms)
    }
}

impl Engine {
    /// The table's items as of a time, from the current state of the store.
    pub(crate) async fn past(&self, table: &Table, as_of: AsOf) -> Result<Past> {
        let definition = table.definition();
        let (Some(settings), Some(history)) = (&definition.history, table.history()) else {
            return Err(HistoryError::Off { table: definition.name.clone() }.into());
        };
        RecoveryWindow::new(settings, self.trusted_clock.read().plausible_ms, 0).check(as_of)?;
        let at = as_of.stamp();
        self.pass(table, history, at).await?;
        Ok(Past {
            now: self.store.snapshot(),
            item_prefix: table.item_prefix().clone(),
            undo_prefix: history.prefix.clone(),
            at,
            known: Some(Arc::clone(&self.known_rows)),
        })
    }

    /// Advances the table's clock, so that everything that is committed from now on has a later stamp.
    ///
    /// # Errors
    /// [`Error::TableChanged`] if the definition is stale: the clock of a deleted table must not come back.
    pub(crate) async fn pass(&self, table: &Table, history: &HistoryKeys, at: Stamp) -> Result<()> {
        if history.passed.load(Ordering::Acquire) >= at.to_bits() {
            return Ok(());
        }
        let advance = |versions: &[Option<zenobe_store::Value>]| {
            table.check_current(versions[0].as_ref())?;
            let mut batch = Batch::new();
            batch.advance(history.clock.clone(), at);
            Ok::<_, Error>((batch, ()))
        };
        let set = WriteSet { guards: std::slice::from_ref(table.guard_key()), keys: &[] };
        write_with(&*self.store, set, advance).await??;
        history.passed.fetch_max(at.to_bits(), Ordering::AcqRel);
        Ok(())
    }

    /// Nothing that is committed has a later stamp than this. It covers what other nodes wrote whose clocks are ahead, and what
    /// was written after a read of a second that is not over.
    pub(crate) async fn latest_stamp(&self, history: &HistoryKeys, now_ms: u64) -> Result<Stamp> {
        let ends = self.store.log_ends(&history.clock, 1).await?;
        let shown = ends.first().filter(|(clock, _)| *clock == history.clock);
        let shown = shown.map_or(Stamp::default(), |(_, end)| end.clock());
        Ok(shown.max(Stamp::last_of_ms(now_ms)))
    }

    /// Like [`Engine::past`], if a time is given.
    pub(crate) async fn past_if(
        &self,
        table: &Arc<Table>,
        as_of: Option<AsOf>,
    ) -> Result<Option<Past>> {
        match as_of {
            None => Ok(None),
            Some(as_of) => Ok(Some(Box::pin(self.past(table, as_of)).await?)),
        }
    }
}
