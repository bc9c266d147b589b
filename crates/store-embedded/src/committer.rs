//! The thread that commits what writers leave to it: see [`crate::turn`]. It also looks after the store when nobody writes, and
//! when writing has failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use zenobe_store::{Error, Result};

use crate::database::Database;
use crate::failure;
use crate::log_writer::LogWriter;
use crate::options::Durability;
use crate::queue::Next;
use crate::settler::Settler;
use crate::shared::Shared;
use crate::turn::{Means, Turn, commit_patiently};

/// After so long without a write, the horizon is written by itself.
const IDLE_AFTER: Duration = Duration::from_millis(100);

pub(crate) struct Committer {
    shared: Arc<Shared>,
}

impl Committer {
    pub fn new(shared: Arc<Shared>) -> Result<Committer> {
        let settler = start_settler(&shared)?;
        let database = Arc::clone(shared.view_for_writing()?.database());
        Ok(Committer::with(shared, database, settler))
    }

    fn with(shared: Arc<Shared>, database: Arc<Database>, settler: Option<Settler>) -> Committer {
        let writer = LogWriter::new(database, Arc::clone(&shared.values));
        *Turn::wait(&shared).means() = Some(Means::new(writer, settler));
        Committer { shared }
    }

    pub fn run(self) {
        // A defect must not leave writers waiting for ever: it disables writes like a failing disk.
        if catch_unwind(AssertUnwindSafe(|| self.work())).is_err() {
            let detail = "the committer panicked; restart the server".to_owned();
            failure::disable_writes(&self.shared, &Error::Io { detail }, Vec::new());
        }
    }

    fn work(&self) {
        loop {
            // An idle store sleeps, once its log says that all of it is durable.
            let is_recorded = self.is_horizon_recorded();
            match self.shared.queue.next((!is_recorded).then_some(IDLE_AFTER)) {
                Next::Commit => commit_patiently(&self.shared),
                Next::Idle => self.record_horizon(),
                Next::Stirred => {}
                Next::Recover => match self.recover() {
                    Some(()) => {}
                    None => return,
                },
                Next::Finish => {
                    // Somebody may have been told to wait just now.
                    return commit_patiently(&self.shared);
                }
            }
        }
    }

    /// Whether the log says that all of it is durable.
    fn is_horizon_recorded(&self) -> bool {
        let mut turn = Turn::wait(&self.shared);
        turn.means().as_ref().is_none_or(|means| means.writer.is_horizon_recorded())
    }

    fn record_horizon(&self) {
        let mut turn = Turn::wait(&self.shared);
        let recorded = turn.means().as_mut().map(|means| means.writer.record_horizon());
        if let Some(Err(error)) = recorded {
            failure::disable_writes(&self.shared, &error, Vec::new());
        }
    }

    /// Waits until the database can be opened anew, or `None` if the store is closed before.
    fn recover(&self) -> Option<()> {
        let means = Turn::wait(&self.shared).means().take()?;
        let database = means.into_database();
        let settler = self.restart_settler()?;
        let database = failure::recover(&self.shared, database)?;
        let writer = LogWriter::new(database, Arc::clone(&self.shared.values));
        *Turn::wait(&self.shared).means() = Some(Means::new(writer, settler));
        // For those who came before.
        self.shared.queue.call_committer();
        Some(())
    }

    fn restart_settler(&self) -> Option<Option<Settler>> {
        loop {
            match start_settler(&self.shared) {
                Ok(settler) => return Some(settler),
                Err(error) => tracing::warn!("not recovered yet: {error}"),
            }
            if self.shared.queue.wait_unless_closed(failure::RECOVERY_INTERVAL) {
                return None;
            }
        }
    }
}

impl Drop for Committer {
    /// Settles what has been written, and keeps neither threads nor the database any longer.
    fn drop(&mut self) {
        let means = Turn::wait(&self.shared).means().take();
        drop(means);
    }
}

fn start_settler(shared: &Arc<Shared>) -> Result<Option<Settler>> {
    match shared.options.durability {
        Durability::Sync => Settler::start(Arc::clone(shared)).map(Some),
        // What is written has been handed to the system.
        Durability::Os => Ok(None),
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
        let settler = Settler::start_with(Arc::clone(&shared), |shared, unsettled| {
            let _groups = unsettled.next(shared).unwrap();
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
