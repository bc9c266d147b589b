//! Backups of a whole database in a directory: while it is served ([`Database::back_up`]), continuously ([`Database::ship_to`]), and
//! back again ([`restore`], [`verify`]).
//!
//! `zenobe_backup` knows the object store, and nothing of RocksDB. `zenobe_store_embedded` copies its files, hands out its commit groups, and applies them to a copy. This
//! module puts the two together.

mod content;
mod restoring;
mod shipping;
mod source;
mod verifying;

use std::sync::Arc;

use zenobe_backup::manifest::Manifest;
use zenobe_backup::stored_files::{self, FileProgress, Subject};
use zenobe_backup::{BackupError, CpuShare, Repository, new_id};
use zenobe_store::{Stamp, system_time_ms};
use zenobe_store_embedded::EmbeddedStore;
use zenobe_transfer::objects::{ObjectLocation, ObjectStoreOptions};

use crate::exclusive::Exclusive;
use crate::options::Location;
use crate::{Database, RuntimeThread};

pub use restoring::{RestoreSummary, restore};
pub use shipping::ShipperHandle;
pub use verifying::{VerifySummary, verify};

/// What a backup, a restore or a verification is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackupStage {
    /// Linking the files of the running database.
    #[default]
    Copying,
    /// Reading the copy, for checksums of its content.
    Reading,
    /// Storing files that are new.
    Storing,
    /// Fetching files.
    Fetching,
    /// Applying the shipped log.
    Applying,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackupProgress {
    pub stage: BackupStage,
    pub files: FileProgress,
    /// How much of the content has been read.
    pub rows: u64,
    pub bytes: u64,
    /// The segments of the log that have been applied, and how many there are.
    pub segments: u64,
    pub segments_total: u64,
}

/// Is told how far the work has got.
pub type BackupObserver = dyn Fn(BackupProgress) + Send + Sync;

/// A backup that has been made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupSummary {
    pub id: String,
    pub at_ms: u64,
    pub files: FileProgress,
    pub rows: u64,
    pub ranges: u64,
}

impl Database {
    /// Copies the whole database to an object store while it is served. Only files that no earlier backup there has stored are sent.
    ///
    /// # Errors
    /// If the database is not in a directory, or if the object store or the disk fail. What was not finished doesn't count.
    pub async fn back_up(
        &self,
        to: &ObjectLocation,
        observe: impl Fn(BackupProgress) + Send + Sync + 'static,
    ) -> Result<BackupSummary, BackupError> {
        let store = self.backed_up_store()?;
        let object_store = self.open.options.object_store.clone();
        let (to, is_backing_up) = (to.clone(), self.open.is_backing_up.clone());
        // Hashing blocks its thread, and must take no time from requests and upkeep.
        let mut thread =
            RuntimeThread::start_yielding("zenobe-backup").map_err(|error| no_thread(&error))?;
        let made = thread.runtime.spawn(async move {
            let _running = Exclusive::begin(&is_backing_up).ok_or_else(|| {
                BackupError::Source("the server is being backed up already".to_owned())
            })?;
            back_up(&store, &to, object_store.as_ref(), &observe).await
        });
        let made = made
            .await
            .unwrap_or_else(|_| Err(BackupError::Source("the backup was interrupted".to_owned())));
        thread.join();
        made
    }

    /// The store, if backups of its files can be made.
    fn backed_up_store(&self) -> Result<Arc<EmbeddedStore>, BackupError> {
        let refused = |why: &str| Err(BackupError::Source(why.to_owned()));
        match (&self.open.options.location, &self.open.embedded) {
            (_, Some(store)) if store.is_handed_over() => {
                refused("the database has been moved; restart the server at its new place")
            }
            (_, Some(store)) => Ok(Arc::clone(store)),
            (Location::Memory, _) => refused(
                "a database in memory has no files to back up; serve a directory with --data",
            ),
            _ => refused(
                "the database is in PostgreSQL, which has its own tools: pg_basebackup or a snapshot of its volume for copies, and \
                 archive_command (pgBackRest, WAL-G, Barman) for recovery to any second; pg_dump for a copy of one moment",
            ),
        }
    }
}

async fn back_up(
    store: &EmbeddedStore,
    to: &ObjectLocation,
    object_store: Option<&ObjectStoreOptions>,
    observe: &BackupObserver,
) -> Result<BackupSummary, BackupError> {
    let mut progress = BackupProgress::default();
    observe(progress);
    let repository = Repository::open(to, object_store, true)?;
    let (id, database) = (new_id(system_time_ms()), store.identity()?);
    let earlier = stored_files::begin(&repository, &id, database).await?;
    let copy = source::copy_files(store, &id).await?;
    let at = Stamp::last_of_ms(system_time_ms());
    progress.stage = BackupStage::Reading;
    let mut cpu_share = CpuShare::gentle();
    let content = content::sum(&copy.path, &mut cpu_share, &mut |rows, bytes| {
        observe(BackupProgress { rows, bytes, ..progress });
    })
    .await?;
    (progress.rows, progress.bytes) = (content.rows(), content.bytes());
    progress.stage = BackupStage::Storing;
    let (rows, ranges) = (content.rows(), content.ranges.len() as u64);
    let sequence = copy.sequence;
    let subject = Subject { id, generation: None, database, sequence, at, content: Some(content) };
    let stored = parking_lot::Mutex::new(FileProgress::default());
    let observe_files = |files| {
        *stored.lock() = files;
        observe(BackupProgress { files, ..progress });
    };
    let manifest: Manifest = stored_files::store(
        &repository,
        &copy.path,
        subject,
        &earlier,
        &mut cpu_share,
        &observe_files,
    )
    .await?;
    let files = *stored.lock();
    tracing::info!(
        id = manifest.id,
        to = repository.place(),
        bytes = files.bytes_total,
        "the database is backed up"
    );
    Ok(BackupSummary { id: manifest.id, at_ms: manifest.at.at_ms(), files, rows, ranges })
}

fn no_thread(error: &std::io::Error) -> BackupError {
    BackupError::Source(format!("cannot start a thread: {error}"))
}
