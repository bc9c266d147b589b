//! The one thread that writes to RocksDB: it drains everything that waits into one write, and takes the
//! snapshot that readers will see once the write is durable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rocksdb::WriteOptions;
use zenobe_store::{Error, Result};

use crate::counters::Numbers;
use crate::database::{Database, rocksdb_error};
use crate::failure;
use crate::group::{Group, build_write};
use crate::options::Durability;
use crate::queue::{Next, Pending};
use crate::settler::{Settler, settle};
use crate::shared::Shared;
use crate::view::View;

pub(crate) struct Committer {
    shared: Arc<Shared>,
    database: Arc<Database>,
    numbers: Numbers,
    /// The thread that syncs, if there is anything to sync.
    settler: Option<Settler>,
}

impl Committer {
    pub fn new(shared: Arc<Shared>) -> Result<Committer> {
        let database = Arc::clone(shared.view()?.database());
        let settler = match shared.options.durability {
            Durability::Sync => Some(Settler::start(Arc::clone(&shared))?),
            Durability::Os => None,
        };
        Ok(Committer { shared, database, numbers: Numbers::default(), settler })
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
            match self.shared.queue.next() {
                Next::Commit(batches) => self.commit(batches),
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
            Ok((view, outcomes)) => {
                let group = Group { batches, outcomes, view };
                match &self.settler {
                    Some(settler) => settler.settle(&self.shared, group),
                    None => settle(&self.shared, vec![group]),
                }
            }
            Err(error) => {
                let group = Group { batches, outcomes: Vec::new(), view: None };
                failure::disable_writes(&self.shared, &error, vec![group]);
            }
        }
        self.numbers.trim();
    }

    fn write(
        &mut self,
        batches: &[Pending],
    ) -> Result<(Option<Arc<View>>, Vec<zenobe_store::WriteOutcome>)> {
        let (write, outcomes) = build_write(&self.database, &mut self.numbers, batches)?;
        let Some(write) = write else { return Ok((None, outcomes)) };
        // Under `Durability::Sync` this reaches only a buffer; the settler flushes and syncs it.
        let written = self.database.rocks().write_opt(write, &WriteOptions::default());
        written.map_err(|error| rocksdb_error(&error))?;
        Ok((Some(Arc::new(View::new(Arc::clone(&self.database)))), outcomes))
    }

    /// Waits until the database can be opened anew, or `None` if the store is closed before.
    fn recover(self) -> Option<Committer> {
        let Committer { shared, database, settler, numbers: _ } = self;
        let database = failure::recover(&shared, database)?;
        Some(Committer { shared, database, numbers: Numbers::default(), settler })
    }
}
