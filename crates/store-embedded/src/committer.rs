//! The one thread that writes to RocksDB: it drains everything that waits into one write, and takes the
//! snapshot that readers will see once the write is durable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use zenobe_store::{Error, Key, Result, WriteOutcome};

use crate::counters::Numbers;
use crate::database::Database;
use crate::failure;
use crate::group::{Built, Group, build_write};
use crate::options::Durability;
use crate::queue::{Next, Pending};
use crate::settler::{Settler, settle, settle_alone};
use crate::shared::Shared;
use crate::view::View;

/// After so long without a write, the horizon is written by itself.
const IDLE_AFTER: Duration = Duration::from_millis(100);

pub(crate) struct Committer {
    shared: Arc<Shared>,
    database: Arc<Database>,
    numbers: Numbers,
    /// The horizon that the log was last told.
    recorded_horizon: u64,
    /// The thread that syncs while the next group is written, if there is anything to sync.
    settler: Option<Settler>,
}

/// What a group left behind: see [`Group`].
struct Written {
    outcomes: Vec<WriteOutcome>,
    counters: Vec<Key>,
    view: Option<Arc<View>>,
}

impl Committer {
    pub fn new(shared: Arc<Shared>) -> Result<Committer> {
        let database = Arc::clone(shared.view_for_writing()?.database());
        let settler = match shared.options.durability {
            Durability::Sync => Some(Settler::start(Arc::clone(&shared))?),
            Durability::Os => None,
        };
        Ok(Committer::with(shared, database, settler))
    }

    fn with(shared: Arc<Shared>, database: Arc<Database>, settler: Option<Settler>) -> Committer {
        let recorded_horizon = database.rocks().latest_sequence_number();
        Committer { shared, database, numbers: Numbers::default(), recorded_horizon, settler }
    }

    pub fn run(self) {
        let shared = Arc::clone(&self.shared);
        // A defect must not leave writers waiting for ever: it disables writes like a failing disk.
        if catch_unwind(AssertUnwindSafe(|| self.work())).is_err() {
            let detail = "the committer panicked; restart the server".to_owned();
            failure::disable_writes(&shared, &Error::Io { detail }, Vec::new());
        }
    }

    fn work(mut self) {
        loop {
            // An idle store sleeps, once its log says that all of it is durable.
            let is_recorded =
                self.recorded_horizon == self.database.rocks().latest_sequence_number();
            match self.shared.queue.next((!is_recorded).then_some(IDLE_AFTER)) {
                Next::Commit(batches) => self.commit(batches),
                Next::Idle => self.record_horizon(),
                Next::Recover => match self.recover() {
                    Some(recovered) => self = recovered,
                    None => return,
                },
                Next::Finish => return,
            }
        }
    }

    fn commit(&mut self, batches: Vec<Pending>) {
        match self.write(&batches) {
            Ok(Written { outcomes, counters, view }) => {
                let group = Group { batches, outcomes, counters, view };
                match &self.settler {
                    // Nothing waits to be written meanwhile, so another thread would only have to be woken.
                    Some(_) if self.shared.queue.holds_only(group.batches.len()) => {
                        settle_alone(&self.shared, group);
                    }
                    Some(settler) => settler.settle(&self.shared, group),
                    None => settle(&self.shared, vec![group]),
                }
            }
            Err(error) => {
                failure::disable_writes(
                    &self.shared,
                    &error,
                    vec![Group::without_outcome(batches)],
                );
            }
        }
        self.numbers.trim();
    }

    fn write(&mut self, batches: &[Pending]) -> Result<Written> {
        let horizon = self.database.horizon();
        let Built { write, outcomes, counters } =
            build_write(&self.database, &mut self.numbers, horizon, batches)?;
        let Some(write) = write else { return Ok(Written { outcomes, counters, view: None }) };
        self.database.write(write)?;
        self.recorded_horizon = horizon;
        let view = View::new(Arc::clone(&self.database), Arc::clone(&self.shared.values));
        Ok(Written { outcomes, counters, view: Some(Arc::new(view)) })
    }

    /// Damage to the last groups could not be told from a torn end if nothing said that they were durable.
    fn record_horizon(&mut self) {
        let horizon = self.database.horizon();
        if horizon == self.recorded_horizon {
            return;
        }
        match self.database.write_horizon(horizon) {
            Ok(()) => self.recorded_horizon = horizon,
            Err(error) => failure::disable_writes(&self.shared, &error, Vec::new()),
        }
    }

    /// Waits until the database can be opened anew, or `None` if the store is closed before.
    fn recover(self) -> Option<Committer> {
        let Committer { shared, database, settler, .. } = self;
        let settler = match settler {
            Some(settler) => Some(replace_settler(&shared, settler)?),
            None => None,
        };
        let database = failure::recover(&shared, database)?;
        Some(Committer::with(shared, database, settler))
    }
}

/// Waits until a settler has dealt with everything it was handed, after which nothing of the failed
/// database is published or released any more, and starts another: the old one's thread may have ended.
fn replace_settler(shared: &Arc<Shared>, settler: Settler) -> Option<Settler> {
    drop(settler);
    loop {
        match Settler::start(Arc::clone(shared)) {
            Ok(settler) => return Some(settler),
            Err(error) => tracing::warn!("not recovered yet: {error}"),
        }
        if shared.queue.wait_unless_closed(failure::RECOVERY_INTERVAL) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Committer, Settler};
    use crate::options::Options;
    use crate::shared::Shared;
    use crate::write::write;
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    use zenobe_store::conformance::block_on;
    use zenobe_store::{Batch, Decision, Error, WriteSet};

    fn put(shared: &Shared) -> Result<(), Error> {
        let mut decide = |_: &[_]| {
            let mut batch = Batch::new();
            batch.put("k", "v");
            Decision::Commit(batch)
        };
        block_on(write(shared, WriteSet::default(), &mut decide)).map(drop)
    }

    /// What the settler held when it ended must not count as in flight for ever.
    #[test]
    fn recovers_from_the_end_of_its_settler() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { in_flight_batches_max: 2, ..Options::default() };
        let shared = Arc::new(Shared::open(directory.path(), options).unwrap());
        // As if another group were in flight, or the committer would sync by itself.
        shared.queue.leak();
        let settler = Settler::start_with(Arc::clone(&shared), |_, receiver| {
            let _group = receiver.recv().unwrap();
            panic!("a defect, as this test wants it");
        });
        let database = Arc::clone(shared.published().unwrap().database());
        let committer = Committer::with(Arc::clone(&shared), database, Some(settler.unwrap()));
        let thread = std::thread::spawn(move || committer.run());

        let failed = put(&shared);
        assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
        let begun = Instant::now();
        while !matches!(put(&shared), Ok(())) {
            assert!(begun.elapsed() < Duration::from_secs(20), "did not recover");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(shared.statistics().write_failure, None);
        put(&shared).unwrap();
        shared.queue.close();
        thread.join().unwrap();
    }
}
