//! The second limit: a loop that only writes bytes to a file and syncs them.
//!
//! Each writer waits for its own bytes. One thread takes everything that is queued, writes it with
//! one call, syncs it with one fdatasync and wakes the writers. Nothing that it stores can be found
//! again, so no store that acknowledges durable writes one by one to the same number of waiting
//! writers can be faster on this disk.
//!
//! How the writers run, whether a batch waits for everybody, and whether the file grows all make a
//! difference, and the best choice depends on the machine: the fastest variant counts.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::Result;

const TRIAL: Duration = Duration::from_millis(700);
/// The region to overwrite again and again, as large as a log that a store would reuse.
const PREALLOCATED_BYTES: usize = 64 << 20;

#[derive(Debug, Clone)]
pub struct CommitLoop {
    pub file: PathBuf,
    pub writers: usize,
    pub bytes_per_write: usize,
    way: Way,
}

#[derive(Debug, Clone, Copy)]
struct Way {
    writers: Writers,
    gathers: bool,
    log: Log,
}

/// Where the bytes go in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Log {
    /// Appends: each sync also makes the file's new size and blocks durable.
    Grows,
    /// Overwrites zeros that were synced before, so a sync writes only data.
    IsPreallocated,
}

/// How writers run.
#[derive(Debug, Clone, Copy)]
enum Writers {
    TasksOnOneThread,
    TasksOnAllCores,
    Threads,
}

/// All combinations.
fn ways() -> impl Iterator<Item = Way> {
    let writers = [Writers::TasksOnOneThread, Writers::TasksOnAllCores, Writers::Threads];
    writers.into_iter().flat_map(|writers| {
        [true, false].into_iter().flat_map(move |gathers| {
            [Log::Grows, Log::IsPreallocated].map(|log| Way { writers, gathers, log })
        })
    })
}

impl CommitLoop {
    /// Tries every combination briefly and keeps the fastest.
    pub fn fastest(file: &Path, writers: usize, bytes_per_write: usize) -> Result<CommitLoop> {
        let mut best: Option<(f64, CommitLoop)> = None;
        for way in ways() {
            let candidate = CommitLoop { file: file.to_owned(), writers, bytes_per_write, way };
            let rate = candidate.writes_per_second(TRIAL)?;
            if best.as_ref().is_none_or(|(fastest, _)| rate > *fastest) {
                best = Some((rate, candidate));
            }
        }
        Ok(best.ok_or("there is no way")?.1)
    }

    pub fn describe(&self) -> String {
        let writers = match self.way.writers {
            Writers::TasksOnOneThread => "tasks on one thread",
            Writers::TasksOnAllCores => "tasks on all cores",
            Writers::Threads => "threads",
        };
        let group = match self.way.gathers {
            true => "each group waits for all of them",
            false => "a group takes those that wait",
        };
        let log = match self.way.log {
            Log::Grows => "the file grows",
            Log::IsPreallocated => "a file of zeros is written over",
        };
        format!("{} writers as {writers}; {group}; {log}", self.writers)
    }

    pub fn writes_per_second(&self, duration: Duration) -> Result<f64> {
        let queue = Arc::new(Queue::default());
        let group_min = if self.way.gathers { self.writers } else { 1 };
        let file = self.create_file()?;
        let log = self.way.log;
        let committer = {
            let queue = queue.clone();
            std::thread::spawn(move || commit(&queue, &file, log, group_min))
        };
        let start = Instant::now();
        let end = start + duration;
        let writes = match self.way.writers {
            Writers::Threads => self.run_threads(&queue, end)?,
            Writers::TasksOnOneThread => {
                self.run_tasks(tokio::runtime::Builder::new_current_thread(), &queue, end)?
            }
            Writers::TasksOnAllCores => {
                self.run_tasks(tokio::runtime::Builder::new_multi_thread(), &queue, end)?
            }
        };
        let elapsed = start.elapsed();
        queue.close();
        committer.join().map_err(|_| "the committer panicked")??;
        std::fs::remove_file(&self.file)?;
        Ok(writes as f64 / elapsed.as_secs_f64())
    }

    /// Runs before the clock starts.
    fn create_file(&self) -> Result<File> {
        let file = File::create(&self.file)?;
        if self.way.log == Log::IsPreallocated {
            assert!(self.writers * self.bytes_per_write <= PREALLOCATED_BYTES);
            fallocate(&file, FallocateFlags::empty(), 0, PREALLOCATED_BYTES as u64)?;
            // Blocks that are only reserved would have to be marked as written at their first sync.
            file.write_all_at(&vec![0; PREALLOCATED_BYTES], 0)?;
            file.sync_all()?;
        }
        Ok(file)
    }

    fn run_tasks(
        &self,
        mut runtime: tokio::runtime::Builder,
        queue: &Arc<Queue>,
        end: Instant,
    ) -> Result<u64> {
        runtime.build()?.block_on(async {
            let mut writers = JoinSet::new();
            for _ in 0..self.writers {
                let (queue, bytes) = (queue.clone(), vec![b'x'; self.bytes_per_write]);
                writers.spawn(async move {
                    let mut writes = 0_u64;
                    while queue.append(&bytes).await.is_ok() {
                        writes += 1;
                        if Instant::now() >= end {
                            break;
                        }
                    }
                    queue.leave();
                    writes
                });
            }
            Ok(writers.join_all().await.iter().sum())
        })
    }

    fn run_threads(&self, queue: &Arc<Queue>, end: Instant) -> Result<u64> {
        let write = || {
            let bytes = vec![b'x'; self.bytes_per_write];
            let mut writes = 0_u64;
            while queue.append(&bytes).blocking_recv().is_ok() {
                writes += 1;
                if Instant::now() >= end {
                    break;
                }
            }
            queue.leave();
            writes
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.writers).map(|_| scope.spawn(write)).collect();
            let mut writes = 0;
            for thread in threads {
                writes += thread.join().map_err(|_| "a writer panicked")?;
            }
            Ok(writes)
        })
    }
}

/// The bytes to sync, and the writers that wait for them.
#[derive(Default)]
struct Queue {
    state: Mutex<PendingGroup>,
    changed: Condvar,
}

#[derive(Default)]
struct PendingGroup {
    bytes: Vec<u8>,
    waiting: Vec<oneshot::Sender<()>>,
    /// Writers that have finished: a batch need not wait for them.
    left: usize,
    closed: bool,
}

impl Queue {
    fn append(&self, bytes: &[u8]) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut group = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody commits after the end. Dropping the sender tells the writer.
        if !group.closed {
            group.bytes.extend_from_slice(bytes);
            group.waiting.push(sender);
        }
        drop(group);
        self.changed.notify_one();
        receiver
    }

    fn leave(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).left += 1;
        self.changed.notify_one();
    }

    /// Accepts no more writes and dismisses the waiting writers.
    fn close(&self) {
        let mut group = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        group.closed = true;
        group.waiting.clear();
        drop(group);
        self.changed.notify_one();
    }

    /// Waits for at least `group_min` writers and swaps their batch for the given empty one.
    /// Returns false at the end.
    fn take(&self, group_min: usize, taken: &mut PendingGroup) -> bool {
        let group = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let incomplete = |group: &mut PendingGroup| {
            let complete = group.waiting.len() + group.left >= group_min;
            !group.closed && (group.waiting.is_empty() || !complete)
        };
        let waited = self.changed.wait_while(group, incomplete);
        let mut group = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut group.bytes, &mut taken.bytes);
        std::mem::swap(&mut group.waiting, &mut taken.waiting);
        !taken.waiting.is_empty()
    }
}

/// The committer thread.
fn commit(queue: &Queue, file: &File, log: Log, group_min: usize) -> Result<()> {
    let outcome = commit_groups(queue, file, log, group_min);
    queue.close();
    outcome
}

fn commit_groups(queue: &Queue, file: &File, log: Log, group_min: usize) -> Result<()> {
    let mut end = 0;
    let mut group = PendingGroup::default();
    while queue.take(group_min, &mut group) {
        if log == Log::IsPreallocated && end + group.bytes.len() > PREALLOCATED_BYTES {
            end = 0;
        }
        file.write_all_at(&group.bytes, end as u64)?;
        file.sync_data()?;
        end += group.bytes.len();
        group.bytes.clear();
        for writer in group.waiting.drain(..) {
            let _ = writer.send(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_commits_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("log");
        for way in ways() {
            let commits = CommitLoop { file: file.clone(), writers: 3, bytes_per_write: 10, way };
            let rate = commits.writes_per_second(Duration::from_millis(20)).unwrap();
            assert!(rate > 0.0, "{way:?}");
            assert!(!file.exists(), "{way:?}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error() {
        let missing = Path::new("/nonexistent-directory/log");
        assert!(CommitLoop::fastest(missing, 2, 10).is_err());
    }
}
