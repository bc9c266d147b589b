//! The shipper: keeps a copy of a running store in an object store, at most a few seconds old.
//!
//! ```text
//! follow the log ─┬─► every second: the groups since the last segment ─► segment ─► head
//!                 └─► at once, and once a day: the files ─► snapshot ─► prune
//! ```
//!
//! One generation lasts until the server stops, or until groups are lost: because too many wait while the object store is away, or because the
//! store had to recover from a failure. Then the next one begins, with a new snapshot. Files that are stored need not be stored again, so that is cheap.
//!
//! **Invariant:** nothing that commits ever waits for the shipper.

mod status;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use zenobe_store::shipping::{FollowError, LogGroup};
use zenobe_store::{Stamp, system_time_ms};

use crate::cpu_share::CpuShare;
use crate::error::{BackupError, Result};
use crate::head::Head;
use crate::names::new_id;
use crate::prune::{Keep, prune};
use crate::repository::Repository;
use crate::segment::{Checksum, LogSegment};
use crate::stored_files::{self, Subject};

pub use status::{ShippingState, ShippingStatus};

/// A store whose log is shipped.
pub trait ShippedStore: Send + Sync + 'static {
    /// A number that all copies of the database share.
    fn identity(&self) -> Result<u64>;

    /// Begins to record groups, with stamps after this one.
    fn follow(&self, not_before: Stamp) -> Result<Box<dyn Follower>>;

    /// Copies the files into a directory of this name, which the caller removes.
    fn checkpoint<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<FilesCheckpoint>>;
}

/// The groups of a store that is being followed. Dropping it ends that.
pub trait Follower: Send + Sync {
    /// The oldest groups that nobody has taken: `bytes_max` bytes of them, or one more.
    fn take(&self, bytes_max: usize) -> Result<Vec<LogGroup>, FollowError>;

    /// A stamp that is no later than that of any group to come, if all groups up to it have been taken.
    fn complete_until(&self) -> Option<Stamp>;

    /// A stamp that is no earlier than that of any group so far.
    fn newest_stamp(&self) -> Stamp;

    fn waiting_bytes(&self) -> usize;
}

/// A copy of a store's files that nobody changes.
#[derive(Debug)]
pub struct FilesCheckpoint {
    pub path: PathBuf,
    /// The last sequence number in it.
    pub sequence: u64,
}

impl Drop for FilesCheckpoint {
    fn drop(&mut self) {
        // Its files are links to those of the store, and keep space that compaction has freed.
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove a copy of the files");
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShipOptions {
    /// How long groups are collected.
    pub interval: Duration,
    /// Segments of this size are stored at once.
    pub segment_bytes: usize,
    /// How often the files are stored, so that restoring has less to apply.
    pub snapshot_interval: Duration,
    /// How far back every second can be restored.
    pub retention: Duration,
}

impl Default for ShipOptions {
    fn default() -> ShipOptions {
        const HOUR: Duration = Duration::from_secs(60 * 60);
        ShipOptions {
            interval: Duration::from_secs(1),
            segment_bytes: 4 << 20,
            snapshot_interval: 24 * HOUR,
            retention: 7 * 24 * HOUR,
        }
    }
}

/// How often the shipper looks whether a segment is full.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How often the head is stored.
const HEAD_INTERVAL: Duration = Duration::from_secs(10);
/// Pauses after failures double, up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

pub struct Shipper<S> {
    source: S,
    repository: Repository,
    options: ShipOptions,
    status: Arc<ShippingStatus>,
    is_stopping: Arc<AtomicBool>,
    /// Whether a snapshot waits for a head that confirms it.
    wants_head: AtomicBool,
}

/// Why a generation has ended.
enum End {
    /// Everything has been shipped.
    Stopped,
    Lost(FollowError),
}

impl<S: ShippedStore> Shipper<S> {
    pub fn new(source: S, repository: Repository, options: ShipOptions) -> Shipper<S> {
        let status = Arc::new(ShippingStatus::new(repository.place()));
        Shipper {
            source,
            repository,
            options,
            status,
            is_stopping: Arc::default(),
            wants_head: AtomicBool::new(false),
        }
    }

    pub fn status(&self) -> Arc<ShippingStatus> {
        Arc::clone(&self.status)
    }

    /// Once it is set, the shipper ends as soon as everything is shipped.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_stopping)
    }

    /// Ships until it is stopped, or until another store has taken over.
    pub async fn run(self) {
        let mut pause = PAUSE_FIRST;
        while !self.is_stopping() {
            let begin = Instant::now();
            match self.ship_generation().await {
                Ok(End::Stopped | End::Lost(FollowError::Ended)) => {
                    tracing::info!(to = self.repository.place(), "everything has been shipped");
                    break;
                }
                Ok(End::Lost(error)) => {
                    self.status.lost(&error);
                    tracing::warn!(%error, "the shipped log has a gap; a new generation begins with the files as they are");
                }
                Err(error) => {
                    if self.status.failed(&error) {
                        tracing::warn!(%error, "the log is not being shipped; trying again");
                    }
                }
            }
            pause =
                if begin.elapsed() > PAUSE_MAX { PAUSE_FIRST } else { (pause * 2).min(PAUSE_MAX) };
            self.sleep(pause).await;
        }
        self.status.ended();
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// Waits, but not if the shipper is to stop.
    async fn sleep(&self, duration: Duration) {
        let end = Instant::now() + duration;
        while !self.is_stopping() && Instant::now() < end {
            tokio::time::sleep(LOOK_INTERVAL.min(duration)).await;
        }
    }

    async fn ship_generation(&self) -> Result<End> {
        let database = self.source.identity()?;
        // Also finds out whether the object store can be used at all.
        let earlier = stored_files::earlier(&self.repository, database).await?;
        let follower = self.source.follow(earlier.newest)?;
        let generation = new_id(system_time_ms());
        self.status.begin_generation(&generation);
        tracing::info!(to = self.repository.place(), generation, "shipping the log");
        let follower = &*follower;
        tokio::select! {
            end = self.ship_segments(follower, &generation) => end,
            () = self.take_snapshots(follower, &generation, database) => Ok(End::Stopped),
        }
    }

    async fn ship_segments(&self, follower: &dyn Follower, generation: &str) -> Result<End> {
        let mut shipped =
            Shipped { head: Head::default(), previous: Checksum::default(), stored_at: None };
        loop {
            let is_stopping = self.wait_for_segment(follower).await;
            if let Some(age_s) = self.status.lag_to_report() {
                tracing::warn!(age_s, "shipping is behind: the object store is too slow");
            }
            match follower.take(self.options.segment_bytes) {
                Ok(groups) if groups.is_empty() => {
                    if let Some(until) = follower.complete_until() {
                        shipped.head.until = until;
                        self.status.shipped(0, 0, until);
                    }
                    if is_stopping {
                        self.store_head(generation, &mut shipped).await;
                        return Ok(End::Stopped);
                    }
                }
                Ok(groups) => self.store_segment(generation, groups, &mut shipped).await,
                // The store is closed: nothing comes after what was taken.
                Err(FollowError::Ended) => {
                    shipped.head.until = follower.newest_stamp();
                    self.store_head(generation, &mut shipped).await;
                    return Ok(End::Lost(FollowError::Ended));
                }
                Err(error) => return Ok(End::Lost(error)),
            }
            if self.wants_head.swap(false, Ordering::SeqCst) || shipped.is_head_due() {
                self.store_head(generation, &mut shipped).await;
            }
        }
    }

    /// Waits until it is time, or until there is enough. Returns whether the shipper is to stop.
    async fn wait_for_segment(&self, follower: &dyn Follower) -> bool {
        let end = Instant::now() + self.options.interval;
        loop {
            let waiting_bytes = follower.waiting_bytes();
            self.status.waiting(waiting_bytes);
            let is_stopping = self.is_stopping();
            if is_stopping || waiting_bytes >= self.options.segment_bytes || Instant::now() >= end {
                return is_stopping;
            }
            tokio::time::sleep(LOOK_INTERVAL.min(self.options.interval)).await;
        }
    }

    /// Stores a segment, however long it takes. Meanwhile groups wait. If too many do, they are lost.
    async fn store_segment(&self, generation: &str, groups: Vec<LogGroup>, shipped: &mut Shipped) {
        let number = shipped.head.segments + 1;
        let until = groups.last().map_or(shipped.head.until, |group| group.stamp);
        let segment = LogSegment {
            generation: generation.to_owned(),
            number,
            previous: shipped.previous,
            groups,
        };
        let (checksum, size_bytes) = self.insist(|| self.repository.put_segment(&segment)).await;
        shipped.previous = checksum;
        shipped.head = Head { segments: number, until };
        self.status.shipped(1, size_bytes, until);
    }

    /// Repeats what must succeed, with growing pauses.
    async fn insist<T, F: Future<Output = Result<T>>>(&self, attempt: impl Fn() -> F) -> T {
        let mut pause = PAUSE_FIRST;
        loop {
            match attempt().await {
                Ok(done) => {
                    self.status.succeeded();
                    return done;
                }
                Err(error) => {
                    if self.status.failed(&error) {
                        tracing::warn!(%error, "a part of the log could not be shipped; trying again");
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    async fn store_head(&self, generation: &str, shipped: &mut Shipped) {
        match self.repository.put_head(generation, &shipped.head).await {
            Ok(()) => shipped.stored_at = Some(Instant::now()),
            // The segments are there. The next attempt is soon enough.
            Err(error) => {
                tracing::debug!(%error, "the head of the shipped log could not be stored");
            }
        }
    }

    /// Stores the files, now and at every interval, and removes what has become too old.
    async fn take_snapshots(&self, follower: &dyn Follower, generation: &str, database: u64) {
        let mut pause = PAUSE_FIRST;
        loop {
            match self.take_snapshot(follower, generation, database).await {
                Ok(()) => {
                    pause = PAUSE_FIRST;
                    self.prune().await;
                    tokio::time::sleep(self.options.snapshot_interval).await;
                }
                Err(error) => {
                    if self.status.failed(&error) {
                        tracing::warn!(%error, "the files could not be backed up; trying again");
                    }
                    pause = (pause * 2).min(PAUSE_MAX);
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    async fn take_snapshot(
        &self,
        follower: &dyn Follower,
        generation: &str,
        database: u64,
    ) -> Result<()> {
        let id = new_id(system_time_ms());
        let begin = Instant::now();
        let earlier = stored_files::begin(&self.repository, &id, database).await?;
        let checkpoint = self.source.checkpoint(&id).await?;
        let at = follower.newest_stamp();
        let subject = Subject {
            id,
            generation: Some(generation.to_owned()),
            database,
            sequence: checkpoint.sequence,
            at,
            content: None,
        };
        let mut cpu_share = CpuShare::gentle();
        let observe = |progress| self.status.snapshot_progress(progress);
        let stored = stored_files::store(
            &self.repository,
            &checkpoint.path,
            subject,
            &earlier,
            &mut cpu_share,
            &observe,
        );
        let manifest = stored.await?;
        self.status.snapshot_done();
        self.wants_head.store(true, Ordering::SeqCst);
        self.status.succeeded();
        let (files, bytes) = (manifest.files.len(), manifest.size_bytes());
        tracing::info!(snapshot = manifest.id, files, bytes, elapsed = ?begin.elapsed(), "the files are backed up");
        Ok(())
    }

    async fn prune(&self) {
        let now_ms = system_time_ms();
        let since_ms = now_ms.saturating_sub(self.options.retention.as_millis() as u64);
        match prune(&self.repository, Keep::ShippedSince(since_ms), now_ms).await {
            Ok(pruned) => tracing::debug!(?pruned, "old parts of the shipped log are removed"),
            Err(error) => {
                tracing::warn!(%error, "old parts of the shipped log could not be removed");
            }
        }
    }
}

/// How far a generation has been shipped.
struct Shipped {
    head: Head,
    /// The checksum of the last segment.
    previous: Checksum,
    /// When the head was last stored.
    stored_at: Option<Instant>,
}

impl Shipped {
    fn is_head_due(&self) -> bool {
        self.stored_at.is_none_or(|stored_at| stored_at.elapsed() >= HEAD_INTERVAL)
    }
}

impl From<zenobe_store::Error> for BackupError {
    fn from(error: zenobe_store::Error) -> BackupError {
        BackupError::Source(error.to_string())
    }
}
