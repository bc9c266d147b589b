//! A store that is a list of groups, with files that hold the list.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use zenobe_backup::restore_plan::{Groups, RestorePoint, plan};
use zenobe_backup::ship::{
    FilesCheckpoint, Follower, ShipOptions, ShippedStore, Shipper, ShippingStatus,
};
use zenobe_backup::{BackupError, Repository, Result, fetch};
use zenobe_store::Stamp;
use zenobe_store::shipping::{FollowError, LogGroup};
use zenobe_testing::TemporaryDirectory;
use zenobe_transfer::objects::Bucket;

use crate::faulty_store::FaultyStore;

pub const DATABASE: u64 = 7;

/// How many bytes may wait.
pub const WAITING_BYTES_MAX: usize = 10_000;

#[derive(Clone)]
pub struct ListSource {
    state: Arc<Mutex<State>>,
    directory: Arc<TemporaryDirectory>,
}

#[derive(Default)]
struct State {
    /// All groups, the first with sequence number 1.
    all: Vec<LogGroup>,
    waiting: Vec<LogGroup>,
    error: Option<FollowError>,
    is_followed: bool,
    newest: Stamp,
}

impl ListSource {
    pub fn new(name: &str) -> ListSource {
        ListSource { state: Arc::default(), directory: Arc::new(TemporaryDirectory::new(name)) }
    }

    /// Commits a group and returns its text.
    pub fn commit(&self, text: &str) {
        let mut state = self.state.lock().unwrap();
        let first = state.all.last().map_or(1, LogGroup::next);
        state.newest = state.newest.next().max(now());
        let bytes = text.as_bytes().to_vec().into();
        let group = LogGroup { first, entries: 2, stamp: state.newest, bytes };
        state.all.push(group.clone());
        if !state.is_followed || state.error.is_some() {
            return;
        }
        state.waiting.push(group);
        if state.waiting.iter().map(|group| group.bytes.len()).sum::<usize>() > WAITING_BYTES_MAX {
            state.waiting.clear();
            state.error = Some(FollowError::Overrun { limit_bytes: WAITING_BYTES_MAX });
        }
    }

    pub fn groups(&self) -> Vec<LogGroup> {
        self.state.lock().unwrap().all.clone()
    }

    /// The texts of all groups up to a time.
    pub fn texts(&self, until: Stamp) -> Vec<String> {
        self.groups().iter().filter(|group| group.stamp <= until).map(text).collect()
    }

    pub fn all_texts(&self) -> Vec<String> {
        self.groups().iter().map(text).collect()
    }

    pub fn close(&self) {
        self.state.lock().unwrap().error.get_or_insert(FollowError::Ended);
    }

    /// Ships in the background, and quickly.
    pub fn ship(
        &self,
        repository: &Repository,
    ) -> (Arc<ShippingStatus>, tokio::task::JoinHandle<()>) {
        let options = ShipOptions {
            interval: std::time::Duration::from_millis(20),
            ..ShipOptions::default()
        };
        self.ship_with(repository, options)
    }

    pub fn ship_with(
        &self,
        repository: &Repository,
        options: ShipOptions,
    ) -> (Arc<ShippingStatus>, tokio::task::JoinHandle<()>) {
        // A store can be followed again after it was closed, as after a restart.
        self.state.lock().unwrap().error = None;
        let shipper = Shipper::new(self.clone(), repository.clone(), options);
        (shipper.status(), tokio::spawn(shipper.run()))
    }
}

fn text(group: &LogGroup) -> String {
    String::from_utf8(group.bytes.to_vec()).unwrap()
}

fn now() -> Stamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Stamp::first_of_ms(now.as_millis() as u64)
}

impl ShippedStore for ListSource {
    fn identity(&self) -> Result<u64> {
        Ok(DATABASE)
    }

    fn follow(&self, not_before: Stamp) -> Result<Box<dyn Follower>> {
        let mut state = self.state.lock().unwrap();
        state.newest = state.newest.max(not_before).max(now());
        state.waiting.clear();
        state.error = None;
        state.is_followed = true;
        Ok(Box::new(self.clone()))
    }

    fn checkpoint<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<FilesCheckpoint>> {
        Box::pin(async move {
            let path: PathBuf = self.directory.path().join(name);
            std::fs::create_dir_all(path.join("rocksdb")).unwrap();
            let all = self.groups();
            // Files of ten groups never change; the last one does.
            for (number, groups) in all.chunks(10).enumerate() {
                let lines: String = groups.iter().map(|group| text(group) + "\n").collect();
                std::fs::write(path.join(format!("rocksdb/{number:06}.sst")), lines).unwrap();
            }
            std::fs::write(path.join("rocksdb/empty.log"), "").unwrap();
            std::fs::write(path.join("LOCK"), "1").unwrap();
            let sequence = all.last().map_or(0, |group| group.next() - 1);
            Ok(FilesCheckpoint { path, sequence })
        })
    }
}

impl Follower for ListSource {
    fn take(&self, bytes_max: usize) -> Result<Vec<LogGroup>, FollowError> {
        let mut state = self.state.lock().unwrap();
        let count = state.waiting.len().min(1 + bytes_max / 1_000_000);
        let taken: Vec<LogGroup> = state.waiting.drain(..count).collect();
        match &state.error {
            Some(error) if taken.is_empty() => Err(error.clone()),
            _ => Ok(taken),
        }
    }

    fn complete_until(&self) -> Option<Stamp> {
        let mut state = self.state.lock().unwrap();
        state.newest = state.newest.max(now());
        (state.waiting.is_empty() && state.error.is_none()).then_some(state.newest)
    }

    fn newest_stamp(&self) -> Stamp {
        let mut state = self.state.lock().unwrap();
        state.newest = state.newest.max(now());
        state.newest
    }

    fn waiting_bytes(&self) -> usize {
        self.state.lock().unwrap().waiting.iter().map(|group| group.bytes.len()).sum()
    }
}

pub fn repository(store: &Arc<FaultyStore>) -> Repository {
    Repository::over(Bucket::over(store.clone(), "b"), "some/prefix", "s3://b/some/prefix")
}

/// What a restore finds: the texts of the groups in the files, and those that the log adds.
pub async fn restored(repository: &Repository, target: &RestorePoint) -> Result<Vec<String>> {
    let plan = plan(repository, target).await?;
    let directory = TemporaryDirectory::new("restored");
    fetch::files(repository, &plan.manifest, directory.path(), &[], &|_| {}).await?;
    let mut texts = read_files(directory.path());
    let mut next = plan.manifest.sequence + 1;
    assert_eq!(texts.len() as u64 * 2, plan.manifest.sequence);
    let mut groups = Groups::new(repository, &plan);
    while let Some(segment) = groups.next().await? {
        let begin = next;
        for group in segment.iter().filter(|group| group.first >= begin) {
            if group.first != next {
                return Err(BackupError::Source(format!("{} follows {next}", group.first)));
            }
            next = group.next();
            texts.push(text(group));
        }
    }
    Ok(texts)
}

fn read_files(directory: &Path) -> Vec<String> {
    assert_eq!(std::fs::read(directory.join("rocksdb/empty.log")).unwrap(), b"");
    assert!(!directory.join("LOCK").exists());
    let entries = std::fs::read_dir(directory.join("rocksdb")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let text: String = paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    text.lines().map(str::to_owned).collect()
}

/// Waits until a condition holds, without holding up the shipper.
pub async fn until(mut holds: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !holds() {
        assert!(std::time::Instant::now() < end, "it takes too long");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Waits until a snapshot is there, and everything that was committed by now.
pub async fn until_shipped(status: &ShippingStatus) {
    let newest = now();
    until(|| status.get().restorable_until_ms.is_some_and(|until_ms| until_ms >= newest.at_ms()))
        .await;
}
