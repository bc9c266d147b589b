//! The published snapshot: the state that readers see, and what they are told while there is none.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use zenobe_store::{Error, Result, Value};

use crate::snapshot::Snapshot;

pub(crate) struct Published {
    /// The latest durable state; absent while the database is closed, for the reason beside it.
    snapshot: ArcSwapOption<Snapshot>,
    absence: Mutex<Absence>,
    /// Reads that wait for a snapshot. Locked after `absence`.
    readers: Mutex<Vec<Waker>>,
}

/// Why there is no published snapshot.
#[derive(Debug)]
pub(crate) enum Absence {
    Reopening,
    CannotReopen { detail: String },
    Closed,
}

impl Published {
    pub fn new(snapshot: Snapshot) -> Published {
        Published {
            snapshot: ArcSwapOption::from_pointee(snapshot),
            absence: Mutex::new(Absence::Reopening),
            readers: Mutex::default(),
        }
    }

    /// The published snapshot, if the database is open.
    pub fn get(&self) -> Option<Arc<Snapshot>> {
        self.snapshot.load_full()
    }

    /// The published snapshot. Waits while the database is being reopened.
    pub async fn wait(&self) -> Result<Arc<Snapshot>> {
        match self.get() {
            Some(snapshot) => Ok(snapshot),
            None => poll_fn(|context| self.poll(context)).await,
        }
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Result<Arc<Snapshot>>> {
        let absence = self.absence.lock();
        // Loaded again under the lock, so that a change cannot be missed.
        if let Some(snapshot) = self.get() {
            return Poll::Ready(Ok(snapshot));
        }
        match &*absence {
            Absence::Closed => Poll::Ready(Err(Error::Closed)),
            Absence::CannotReopen { detail } => {
                Poll::Ready(Err(Error::Io { detail: detail.clone() }))
            }
            Absence::Reopening => {
                // A task that is polled again for another reason is woken twice, which does no harm.
                self.readers.lock().push(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The published snapshot, or why there is none. A decision must not wait for it, because it holds key locks. It need
    /// not: without a snapshot, writes are refused anyway.
    pub fn without_waiting(&self) -> Result<Arc<Snapshot>> {
        self.get().ok_or_else(|| match &*self.absence.lock() {
            Absence::Closed => Error::Closed,
            Absence::CannotReopen { detail } => Error::WritesRefused { detail: detail.clone() },
            Absence::Reopening => Error::WritesRefused {
                detail: "the database is being reopened after a failure".to_owned(),
            },
        })
    }

    /// Reads one key of the published snapshot, without counting a reference to it.
    pub async fn read(&self, key: &[u8]) -> Result<Option<Value>> {
        if let Some(snapshot) = &*self.snapshot.load() {
            return snapshot.read(key);
        }
        self.wait().await?.read(key)
    }

    pub fn publish(&self, snapshot: Arc<Snapshot>) {
        self.snapshot.store(Some(snapshot));
    }

    /// Publishes again after [`Published::withdraw`], unless something newer has been published since, and wakes the
    /// readers that wait.
    pub fn publish_again(&self, snapshot: Arc<Snapshot>) {
        let absence = self.absence.lock();
        self.snapshot.compare_and_swap(&None::<Arc<Snapshot>>, Some(snapshot));
        drop(absence);
        self.wake_readers();
    }

    /// Takes the published snapshot away. Readers are told why.
    pub fn withdraw(&self, reason: Absence) -> Option<Arc<Snapshot>> {
        let mut absence = self.absence.lock();
        *absence = reason;
        let snapshot = self.snapshot.swap(None);
        drop(absence);
        self.wake_readers();
        snapshot
    }

    fn wake_readers(&self) {
        let readers = std::mem::take(&mut *self.readers.lock());
        readers.into_iter().for_each(Waker::wake);
    }

    /// Whether only the caller seems to use the database. Short-lived readers may be missed.
    pub fn looks_unused(&self) -> bool {
        self.get().is_none_or(|snapshot| {
            // The published reference, and this one.
            Arc::strong_count(&snapshot) <= 2 && snapshot.is_last()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Absence;
    use crate::inner::Inner;
    use crate::options::Options;
    use crate::snapshot::Snapshot;
    use crate::snapshot_reader::SnapshotReader;
    use futures_util::FutureExt;
    use std::sync::Arc;
    use zenobe_store::conformance::block_on;
    use zenobe_store::{Error, Reader};

    fn snapshot(store: &Inner, of: &Snapshot) -> Arc<Snapshot> {
        Arc::new(Snapshot::new(Arc::clone(of.database()), Arc::clone(&store.value_cache)))
    }

    /// A read that waits for the database does not block its thread.
    #[test]
    fn reads_wait_for_a_snapshot_without_blocking() {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(Inner::open(directory.path(), Options::default()).unwrap());
        let published = &store.published;
        let old = published.withdraw(Absence::Reopening).unwrap();
        let reader = SnapshotReader::new(Arc::clone(&store));
        let mut read = published.read(b"k").boxed();
        let mut snapshot_read = reader.get(b"k");
        assert!((&mut read).now_or_never().is_none());
        assert!((&mut snapshot_read).now_or_never().is_none());
        let decided = published.without_waiting().map(drop);
        assert!(matches!(decided, Err(Error::WritesRefused { .. })), "{decided:?}");

        published.publish_again(snapshot(&store, &old));
        assert_eq!(read.now_or_never().unwrap().unwrap(), None);
        assert_eq!(snapshot_read.now_or_never().unwrap().unwrap(), None);

        published.withdraw(Absence::Closed);
        assert!(matches!(block_on(published.read(b"k")), Err(Error::Closed)));
        assert_eq!(block_on(reader.get(b"k")).unwrap(), None, "it keeps its snapshot");
    }

    /// A waiting task is woken, not merely found ready when it is polled again.
    #[test]
    fn publishing_wakes_the_readers() {
        let directory = tempfile::tempdir().unwrap();
        let store = Inner::open(directory.path(), Options::default()).unwrap();
        let published = &store.published;
        let old = published.withdraw(Absence::Reopening).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| block_on(published.read(b"k")));
            while published.readers.lock().is_empty() {
                std::thread::yield_now();
            }
            published.publish_again(snapshot(&store, &old));
            assert_eq!(waiting.join().unwrap().unwrap(), None);
        });
    }

    #[test]
    fn publishing_again_does_not_replace_what_is_newer() {
        let directory = tempfile::tempdir().unwrap();
        let store = Inner::open(directory.path(), Options::default()).unwrap();
        let published = &store.published;
        let old = published.withdraw(Absence::Reopening).unwrap();
        let newer = snapshot(&store, &old);
        published.publish(Arc::clone(&newer));
        published.publish_again(Arc::clone(&old));
        assert!(Arc::ptr_eq(&published.get().unwrap(), &newer));
        drop(published.withdraw(Absence::Reopening));
        published.publish_again(Arc::clone(&old));
        assert!(Arc::ptr_eq(&published.get().unwrap(), &old));
    }
}
