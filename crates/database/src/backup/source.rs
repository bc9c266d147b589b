//! The embedded store as the shipper sees it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use zenobe_backup::BackupError;
use zenobe_backup::ship::{FilesCheckpoint, Follower, ShippedStore};
use zenobe_engine::keyspace::Collections;
use zenobe_store::shipping::{FollowError, LogGroup};
use zenobe_store::{Stamp, Store};
use zenobe_store_embedded::{EmbeddedStore, LogFollower, Options, PrefixExtractor};

/// How much may wait to be shipped. Beyond that a new generation begins, which costs less than keeping the log twice.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// How long a sync of the log may take, and how often to look.
const DURABLE_AFTER_MAX: Duration = Duration::from_secs(60);
const DURABLE_LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// The memory for a copy that is opened beside the store.
const COPY_CACHE_BYTES: usize = 16 << 20;

pub(super) struct EmbeddedSource(pub Arc<EmbeddedStore>);

impl ShippedStore for EmbeddedSource {
    fn identity(&self) -> Result<u64, BackupError> {
        Ok(self.0.identity()?)
    }

    fn follow(&self, not_before: Stamp) -> Result<Box<dyn Follower>, BackupError> {
        Ok(Box::new(EmbeddedFollower(self.0.follow_log(WAITING_BYTES_MAX, not_before)?)))
    }

    fn checkpoint<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<FilesCheckpoint, BackupError>> {
        Box::pin(copy_files(&self.0, name))
    }
}

struct EmbeddedFollower(LogFollower);

impl Follower for EmbeddedFollower {
    fn take(&self, bytes_max: usize) -> Result<Vec<LogGroup>, FollowError> {
        self.0.take(bytes_max)
    }

    fn complete_until(&self) -> Option<Stamp> {
        self.0.complete_until()
    }

    fn newest_stamp(&self) -> Stamp {
        self.0.newest_stamp()
    }

    fn waiting_bytes(&self) -> usize {
        self.0.waiting_bytes()
    }
}

/// Copies the files of a store that is in use, and opens the copy once: its log moves into tables, so that the copy is one exact
/// state, and is known to open.
pub(super) async fn copy_files(
    store: &EmbeddedStore,
    name: &str,
) -> Result<FilesCheckpoint, BackupError> {
    let path = store.checkpoint_path(name)?;
    store.checkpoint(&path).await?;
    // From here on it is removed whatever happens.
    let mut copy = FilesCheckpoint { path: path.clone(), sequence: 0 };
    let settled = tokio::task::spawn_blocking(move || settle(path)).await;
    let interrupted = |_| Err(BackupError::Source("the copy was interrupted".to_owned()));
    copy.sequence = settled.unwrap_or_else(interrupted)?;
    wait_until_durable(store, copy.sequence).await?;
    Ok(copy)
}

/// The copy may hold groups that the store has written and not synced. If it loses them, nobody may ever have seen them.
async fn wait_until_durable(store: &EmbeddedStore, sequence: u64) -> Result<(), BackupError> {
    let begin = Instant::now();
    while store.durable_sequence()? < sequence {
        if begin.elapsed() > DURABLE_AFTER_MAX {
            return Err(BackupError::Source(
                "the log could not be synced for a long time".to_owned(),
            ));
        }
        tokio::time::sleep(DURABLE_LOOK_INTERVAL).await;
    }
    Ok(())
}

fn settle(path: PathBuf) -> Result<u64, BackupError> {
    let store = EmbeddedStore::open(path, copy_options())?;
    let sequence = store.last_sequence()?;
    // Closing it flushes what was in the log.
    drop(store);
    Ok(sequence)
}

/// How to open a copy that nobody serves: with little memory, and without compacting it.
pub(super) fn copy_options() -> Options {
    Options {
        cache_bytes: COPY_CACHE_BYTES,
        prefixes: Some(PrefixExtractor::of::<Collections>()),
        is_served: false,
        ..Options::default()
    }
}
