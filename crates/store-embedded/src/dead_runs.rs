//! The thread that steps over long runs of dead entries, one after the other. See [`crate::scan`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use futures_channel::oneshot;
use parking_lot::Mutex;
use rocksdb::PerfMetric::{InternalDeleteSkippedCount, InternalKeySkippedCount};
use rocksdb::perf::{PerfContext, PerfStatsLevel, set_perf_stats};
use zenobe_store::{Direction, Error, Key, KeyRange, Result};

use crate::reclaim::Reclaimer;
use crate::snapshot::Snapshot;

/// From this many dead entries on, their range is compacted: the next scan would meet them again.
const RECLAIMED_MIN: u64 = 10_000;

pub(crate) struct DeadRuns {
    reclaimer: Arc<Reclaimer>,
    /// Started with the first run.
    thread: Mutex<Option<Thread>>,
}

struct Thread {
    requests: mpsc::Sender<Request>,
    is_stopping: Arc<AtomicBool>,
    handle: JoinHandle<()>,
}

struct Request {
    snapshot: Arc<Snapshot>,
    range: KeyRange,
    direction: Direction,
    answer: oneshot::Sender<RunEnd>,
}

/// The result of a request.
enum RunEnd {
    Found(Result<Option<Key>>),
    /// The thread was stopped before it came to this request.
    AskAgain,
}

impl DeadRuns {
    pub fn new(reclaimer: Arc<Reclaimer>) -> DeadRuns {
        DeadRuns { reclaimer, thread: Mutex::default() }
    }

    /// The first entry of a range that begins with a run of dead ones.
    pub async fn end(
        &self,
        snapshot: Arc<Snapshot>,
        range: KeyRange,
        direction: Direction,
    ) -> Result<Option<Key>> {
        let ended = || Error::Io { detail: "the thread that skips tombstones has ended".into() };
        loop {
            let (answer, answered) = oneshot::channel();
            let (snapshot, range) = (Arc::clone(&snapshot), range.clone());
            let request = Request { snapshot, range, direction, answer };
            self.requests()?.send(request).map_err(|_| ended())?;
            match answered.await {
                Ok(RunEnd::Found(found)) => return found,
                Ok(RunEnd::AskAgain) => {}
                Err(oneshot::Canceled) => return Err(ended()),
            }
        }
    }

    fn requests(&self) -> Result<mpsc::Sender<Request>> {
        let mut thread = self.thread.lock();
        if let Some(thread) = thread.as_ref().filter(|thread| !thread.handle.is_finished()) {
            return Ok(thread.requests.clone());
        }
        let (requests, received) = mpsc::channel();
        let is_stopping = Arc::new(AtomicBool::new(false));
        let (reclaimer, stopping) = (Arc::clone(&self.reclaimer), Arc::clone(&is_stopping));
        let handle = crate::spawn("zenobe-skip", move || {
            set_perf_stats(PerfStatsLevel::EnableCount);
            work(&received, &stopping, |request| find(request, &reclaimer));
        })?;
        *thread = Some(Thread { requests: requests.clone(), is_stopping, handle });
        Ok(requests)
    }

    /// Waits for the run that the thread is stepping over, and no longer. A scan that is still under way starts the
    /// thread again.
    pub fn stop(&self) {
        let thread = self.thread.lock().take();
        if let Some(Thread { requests, is_stopping, handle }) = thread {
            is_stopping.store(true, Ordering::Release);
            drop(requests);
            // If the thread panicked, its end has already failed all requests.
            let _ = handle.join();
        }
    }
}

fn work(
    requests: &mpsc::Receiver<Request>,
    is_stopping: &AtomicBool,
    mut find: impl FnMut(&Request) -> Result<Option<Key>>,
) {
    while let Ok(request) = requests.recv() {
        // The scan may have been dropped.
        if request.answer.is_canceled() {
            continue;
        }
        let found = match is_stopping.load(Ordering::Acquire) {
            true => RunEnd::AskAgain,
            false => RunEnd::Found(find(&request)),
        };
        let Request { snapshot, answer, .. } = request;
        // Dropped before the answer, so that a caller who closes the store next does not find it in use.
        drop(snapshot);
        let _ = answer.send(found);
    }
}

fn find(request: &Request, reclaimer: &Reclaimer) -> Result<Option<Key>> {
    let Request { snapshot, range, direction, .. } = request;
    let mut counts = PerfContext::default();
    counts.reset();
    let found = snapshot.first_key(range, *direction)?;
    let dead = counts.metric(InternalDeleteSkippedCount) + counts.metric(InternalKeySkippedCount);
    if dead >= RECLAIMED_MIN {
        let run = run(range.clone(), found.as_ref(), *direction);
        // It is only a hint, so its failure does not concern the scan.
        if let Err(error) = reclaimer.request(Arc::clone(snapshot.database()), run) {
            tracing::warn!("a range of tombstones cannot be compacted: {error}");
        }
    }
    Ok(found)
}

/// The part of a range before the entry that was found.
fn run(range: KeyRange, found: Option<&Key>, direction: Direction) -> KeyRange {
    match (found, direction) {
        (None, _) => range,
        (Some(key), Direction::Forward) => KeyRange { end: Some(key.clone()), ..range },
        (Some(key), Direction::Reverse) => KeyRange { start: key.clone(), ..range },
    }
}

#[cfg(test)]
mod tests {
    use super::{DeadRuns, Request, RunEnd, work};
    use crate::inner::Inner;
    use crate::options::Options;
    use futures_channel::oneshot;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use zenobe_store::conformance::block_on;
    use zenobe_store::{Direction, KeyRange};

    /// Each run can take tenths of a second. Closing the store waits for one of them, not for all.
    #[test]
    fn stopping_does_not_work_through_the_queue() {
        let directory = tempfile::tempdir().unwrap();
        let store = Inner::open(directory.path(), Options::default()).unwrap();
        let (requests, received) = mpsc::channel();
        let mut answers: Vec<oneshot::Receiver<RunEnd>> = Vec::new();
        for _ in 0..3 {
            let (answer, answered) = oneshot::channel();
            let snapshot = store.published.get().unwrap();
            let (range, direction) = (KeyRange::all(), Direction::Forward);
            requests.send(Request { snapshot, range, direction, answer }).unwrap();
            answers.push(answered);
        }
        drop(requests);
        let is_stopping = AtomicBool::new(false);
        let mut count = 0;
        work(&received, &is_stopping, |_| {
            count += 1;
            is_stopping.store(true, Ordering::Release);
            Ok(None)
        });
        assert_eq!(count, 1);
        let answers: Vec<RunEnd> =
            answers.into_iter().map(|answered| block_on(answered).unwrap()).collect();
        assert!(matches!(answers[..], [RunEnd::Found(_), RunEnd::AskAgain, RunEnd::AskAgain]));
    }

    /// A scan that a stop has rejected continues.
    #[test]
    fn a_scan_under_way_survives_a_stop() {
        let directory = tempfile::tempdir().unwrap();
        let store = Inner::open(directory.path(), Options::default()).unwrap();
        let dead_runs = DeadRuns::new(Arc::default());
        let end = || {
            let snapshot = store.published.get().unwrap();
            dead_runs.end(snapshot, KeyRange::all(), Direction::Forward)
        };
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let scans = scope.spawn(|| {
                let found = (0..500).map(|_| block_on(end())).collect::<Vec<_>>();
                is_done.store(true, Ordering::Release);
                found
            });
            while !is_done.load(Ordering::Acquire) {
                dead_runs.stop();
            }
            assert!(scans.join().unwrap().into_iter().all(|found| matches!(found, Ok(None))));
        });
    }
}
