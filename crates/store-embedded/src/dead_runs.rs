//! The thread that steps over long runs of dead entries, one after the other. See [`crate::scan`].

use std::sync::Arc;
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
    handle: JoinHandle<()>,
}

struct Request {
    snapshot: Arc<Snapshot>,
    range: KeyRange,
    direction: Direction,
    answer: oneshot::Sender<Result<Option<Key>>>,
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
        let ended = || Error::Io { detail: "the thread that passes over tombstones ended".into() };
        let (answer, answered) = oneshot::channel();
        let request = Request { snapshot, range, direction, answer };
        self.requests()?.send(request).map_err(|_| ended())?;
        answered.await.unwrap_or_else(|_| Err(ended()))
    }

    fn requests(&self) -> Result<mpsc::Sender<Request>> {
        let mut thread = self.thread.lock();
        if let Some(thread) = thread.as_ref().filter(|thread| !thread.handle.is_finished()) {
            return Ok(thread.requests.clone());
        }
        let (requests, received) = mpsc::channel();
        let reclaimer = Arc::clone(&self.reclaimer);
        let handle = crate::spawn("zenobe-skip", move || work(&received, &reclaimer))?;
        *thread = Some(Thread { requests: requests.clone(), handle });
        Ok(requests)
    }

    /// Waits until nothing uses the database any more. A scan that is still under way starts the thread again.
    pub fn stop(&self) {
        let thread = self.thread.lock().take();
        if let Some(Thread { requests, handle }) = thread {
            drop(requests);
            // What was asked of a thread that panicked has been answered by its end.
            let _ = handle.join();
        }
    }
}

fn work(requests: &mpsc::Receiver<Request>, reclaimer: &Reclaimer) {
    set_perf_stats(PerfStatsLevel::EnableCount);
    let mut counts = PerfContext::default();
    while let Ok(Request { snapshot, range, direction, answer }) = requests.recv() {
        // Whoever asked may have gone since.
        if answer.is_canceled() {
            continue;
        }
        counts.reset();
        let found = snapshot.first_key(&range, direction);
        let dead =
            counts.metric(InternalDeleteSkippedCount) + counts.metric(InternalKeySkippedCount);
        if let Ok(found) = &found
            && dead >= RECLAIMED_MIN
        {
            let run = run(range, found.as_ref(), direction);
            // It is only a hint, and whoever scans has no use for its failure.
            if let Err(error) = reclaimer.request_if_idle(snapshot.database(), run) {
                tracing::warn!("a range of tombstones cannot be compacted: {error}");
            }
        }
        // Before the answer, so that who waits for it and then closes the store does not find it in use.
        drop(snapshot);
        let _ = answer.send(found);
    }
}

/// The part of a range before the entry that was found.
fn run(range: KeyRange, found: Option<&Key>, direction: Direction) -> KeyRange {
    match (found, direction) {
        (None, _) => range,
        (Some(key), Direction::Forward) => KeyRange { end: Some(key.clone()), ..range },
        (Some(key), Direction::Reverse) => KeyRange { start: key.clone(), ..range },
    }
}
