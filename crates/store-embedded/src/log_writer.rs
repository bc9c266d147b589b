//! Writing groups to RocksDB, one after the other in the commit order. [`crate::turn`] says by whom.

use std::sync::Arc;

use rocksdb::WriteBatch;
use zenobe_store::{Error, Key, Result, WriteOutcome};

use crate::counters::Numbers;
use crate::database::Database;
use crate::group::{Built, Group, build_write};
use crate::queue::Pending;
use crate::value_cache::ValueCache;
use crate::view::View;

pub(crate) struct LogWriter {
    database: Arc<Database>,
    values: Arc<ValueCache>,
    numbers: Numbers,
    /// The horizon that the log was last told.
    recorded_horizon: u64,
    /// The group that comes next, if the database did not take it at once.
    postponed: Option<Postponed>,
}

/// A group whose numbers have been given out, so that it must be written as it is.
struct Postponed {
    write: Vec<u8>,
    rest: Rest,
}

/// What a write does not hold of its group.
struct Rest {
    batches: Vec<Pending>,
    horizon: u64,
    outcomes: Vec<WriteOutcome>,
    counters: Vec<Key>,
}

/// A group that was not written, and why.
pub(crate) struct Failed {
    pub batches: Vec<Pending>,
    pub error: Error,
}

impl LogWriter {
    pub fn new(database: Arc<Database>, values: Arc<ValueCache>) -> LogWriter {
        let recorded_horizon = database.rocks().latest_sequence_number();
        let numbers = Numbers::default();
        LogWriter { database, values, numbers, recorded_horizon, postponed: None }
    }

    pub fn into_database(self) -> Arc<Database> {
        self.database
    }

    /// Writes a group, however long the database makes it wait.
    pub fn write(&mut self, batches: Vec<Pending>) -> std::result::Result<Group, Failed> {
        let (write, rest) = self.build(batches)?;
        match write {
            Some(write) => self.finish(write, rest),
            None => Ok(rest.into_group(None)),
        }
    }

    /// Writes a group if the database takes it at once. Otherwise it is postponed, and `None`.
    pub fn write_at_once(
        &mut self,
        batches: Vec<Pending>,
    ) -> std::result::Result<Option<Group>, Failed> {
        let (write, rest) = self.build(batches)?;
        let Some(write) = write else { return Ok(Some(rest.into_group(None))) };
        let copy = write.data().to_vec();
        match self.database.write_at_once(write) {
            Ok(true) => Ok(Some(self.written(rest))),
            Ok(false) => {
                self.postponed = Some(Postponed { write: copy, rest });
                Ok(None)
            }
            Err(error) => Err(rest.fail(error)),
        }
    }

    pub fn has_postponed(&self) -> bool {
        self.postponed.is_some()
    }

    /// Writes the group that was postponed, if there is one.
    pub fn write_postponed(&mut self) -> Option<std::result::Result<Group, Failed>> {
        let Postponed { write, rest } = self.postponed.take()?;
        Some(self.finish(WriteBatch::from_data(&write), rest))
    }

    fn build(
        &mut self,
        batches: Vec<Pending>,
    ) -> std::result::Result<(Option<WriteBatch>, Rest), Failed> {
        debug_assert!(self.postponed.is_none(), "groups are written in the commit order");
        let horizon = self.database.horizon();
        match build_write(&self.database, &mut self.numbers, horizon, &batches) {
            Ok(Built { write, outcomes, counters }) => {
                Ok((write, Rest { batches, horizon, outcomes, counters }))
            }
            Err(error) => Err(Failed { batches, error }),
        }
    }

    fn finish(&mut self, write: WriteBatch, rest: Rest) -> std::result::Result<Group, Failed> {
        match self.database.write(write) {
            Ok(()) => Ok(self.written(rest)),
            Err(error) => Err(rest.fail(error)),
        }
    }

    fn written(&mut self, rest: Rest) -> Group {
        self.recorded_horizon = rest.horizon;
        self.numbers.trim();
        let view = View::new(Arc::clone(&self.database), Arc::clone(&self.values));
        rest.into_group(Some(Arc::new(view)))
    }

    /// Whether the log says that all of it is durable.
    pub fn is_horizon_recorded(&self) -> bool {
        self.recorded_horizon == self.database.rocks().latest_sequence_number()
    }

    /// Damage to the last groups could not be told from a torn end if nothing said that they were durable.
    pub fn record_horizon(&mut self) -> Result<()> {
        let horizon = self.database.horizon();
        if horizon != self.recorded_horizon {
            self.database.write_horizon(horizon)?;
            self.recorded_horizon = horizon;
        }
        Ok(())
    }
}

impl Rest {
    fn into_group(self, view: Option<Arc<View>>) -> Group {
        let Rest { batches, outcomes, counters, .. } = self;
        Group { batches, outcomes, counters, view }
    }

    fn fail(self, error: Error) -> Failed {
        Failed { batches: self.batches, error }
    }
}
