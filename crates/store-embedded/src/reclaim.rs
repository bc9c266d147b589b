//! Giving back the space of deleted entries, in the background.
//!
//! A range is compacted, and nothing more. RocksDB could also drop files that lie wholly inside the range,
//! without reading them, but that would take entries away from snapshots that still see them, and from
//! ranges that are not entirely deleted.

use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use rocksdb::{BottommostLevelCompaction, CompactOptions};
use zenobe_store::{KeyRange, Result};

use crate::database::Database;

/// Hints beyond this many are dropped; ordinary compaction gets there in time.
const PENDING_MAX: usize = 256;

#[derive(Default)]
pub(crate) struct Reclaimer {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    pending: Vec<KeyRange>,
    /// Present while a thread works through what is pending.
    thread: Option<JoinHandle<()>>,
    is_working: bool,
}

impl Reclaimer {
    pub fn request(&self, database: Arc<Database>, range: KeyRange) -> Result<()> {
        let mut state = self.state.lock();
        if range.is_empty() || state.pending.len() >= PENDING_MAX {
            return Ok(());
        }
        state.pending.push(range);
        if !state.is_working {
            let shared = Arc::clone(&self.state);
            state.thread = Some(crate::spawn("zenobe-reclaim", move || work(&shared, &database))?);
            state.is_working = true;
        }
        Ok(())
    }

    /// As [`Reclaimer::request`], unless there is something to do already.
    pub fn request_if_idle(&self, database: &Arc<Database>, range: KeyRange) -> Result<()> {
        match self.is_working() {
            true => Ok(()),
            false => self.request(Arc::clone(database), range),
        }
    }

    pub fn is_working(&self) -> bool {
        self.state.lock().is_working
    }

    /// Forgets what is pending and waits for what is running, which `cancel` should cut short.
    pub fn stop(&self, cancel: impl FnOnce()) {
        let mut state = self.state.lock();
        state.pending.clear();
        let thread = state.thread.take();
        drop(state);
        cancel();
        if let Some(thread) = thread {
            // A compaction that panicked has lost nothing: reclaiming is only a hint.
            if thread.join().is_err() {
                self.state.lock().is_working = false;
            }
        }
    }
}

fn work(state: &Mutex<State>, database: &Database) {
    loop {
        let range = {
            let mut state = state.lock();
            match state.pending.pop() {
                Some(range) => range,
                None => {
                    state.is_working = false;
                    return;
                }
            }
        };
        let mut options = CompactOptions::default();
        // Ordinary compactions go on beside this one.
        options.set_exclusive_manual_compaction(false);
        // Otherwise files are moved down as they are where nothing lies below them, tombstones and all.
        options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
        database.rocks().compact_range_opt(Some(&range.start), range.end.as_ref(), &options);
    }
}
