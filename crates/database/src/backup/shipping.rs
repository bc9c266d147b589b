//! The shipper of an open database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use zenobe_backup::ship::{ShipOptions, Shipper, ShippingState, ShippingStatus};
use zenobe_backup::{BackupError, Repository};
use zenobe_transfer::objects::ObjectLocation;

use super::no_thread;
use super::source::EmbeddedSource;
use crate::{Database, RuntimeThread};

/// Ships until it is finished or dropped.
pub struct ShipperHandle {
    status: Arc<ShippingStatus>,
    is_stopping: Arc<AtomicBool>,
    running: JoinHandle<()>,
    thread: RuntimeThread,
}

impl Database {
    /// Keeps a copy of the database in an object store, at most a few seconds old.
    ///
    /// # Errors
    /// If the database is not in a directory, or if the place can't be used at all. A store that is away is tried again.
    pub fn ship_to(
        &self,
        to: &ObjectLocation,
        options: ShipOptions,
    ) -> Result<ShipperHandle, BackupError> {
        let store = self.backed_up_store()?;
        let repository = Repository::open(to, self.open.options.object_store.as_ref(), true)?;
        let shipper = Shipper::new(EmbeddedSource(store), repository, options);
        let (status, is_stopping) = (shipper.status(), shipper.stop_flag());
        let thread = RuntimeThread::start("zenobe-ship").map_err(|error| no_thread(&error))?;
        let running = thread.runtime.spawn(shipper.run());
        Ok(ShipperHandle { status, is_stopping, running, thread })
    }
}

impl ShipperHandle {
    pub fn status(&self) -> Arc<ShippingStatus> {
        Arc::clone(&self.status)
    }

    /// Ships what is left of a database that has been closed, for at most this long. Returns where it stands.
    pub async fn finish(mut self, patience: Duration) -> ShippingState {
        self.is_stopping.store(true, Ordering::SeqCst);
        if tokio::time::timeout(patience, &mut self.running).await.is_err() {
            self.running.abort();
        }
        self.thread.join();
        self.status.get()
    }
}
