//! The commit path, step by step.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use zenobe_store::conformance::block_on;
use zenobe_store::{Batch, Decision, Error, Stamp, Value, WriteSet};

use super::queue::SMALL_GROUP_BYTES_MAX;
use super::{
    CommitGroup, LeaderState, NO_WRITER_LEADS_FOR, SyncThread, fail_after_panic, lead,
    open_log_tap, replace_leader_state, run_commit_thread, start_sync_thread, unlock, write,
};
use crate::inner::Inner;
use crate::options::{Durability, Options};

struct Opened {
    store: Arc<Inner>,
    /// Starts when a test says so.
    commit_thread: Option<JoinHandle<()>>,
    _directory: tempfile::TempDir,
}

impl Opened {
    fn new(options: Options) -> Opened {
        Opened::with_sync_thread(options, |store| start_sync_thread(store).unwrap())
    }

    fn with_sync_thread(
        options: Options,
        start: impl FnOnce(&Arc<Inner>) -> Option<SyncThread>,
    ) -> Opened {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(Inner::open(directory.path(), options).unwrap());
        let database = Arc::clone(store.published.get().unwrap().database());
        replace_leader_state(&store, Some(LeaderState::new(database, start(&store))));
        Opened { store, commit_thread: None, _directory: directory }
    }

    fn start_commit_thread(&mut self) {
        let store = Arc::clone(&self.store);
        self.commit_thread = Some(std::thread::spawn(move || run_commit_thread(&store)));
    }

    fn read(&self, key: &str) -> Option<Value> {
        self.store.published.get().unwrap().read(key.as_bytes()).unwrap()
    }

    fn with_leader<T>(&self, look: impl FnOnce(&mut LeaderState) -> T) -> T {
        let mut leadership = self.store.leader_lock.lock();
        let seen = look(leadership.as_mut().unwrap());
        unlock(&self.store, leadership);
        seen
    }

    fn has_stalled(&self) -> bool {
        self.with_leader(|leader| leader.stalled.is_some())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.store.queue.close();
        self.commit_thread.take().map(JoinHandle::join);
        replace_leader_state(&self.store, None);
    }
}

async fn try_put(store: &Inner, key: String, value: Value) -> Result<(), Error> {
    let mut decide = |_: &[_]| {
        let mut batch = Batch::new();
        batch.put(key.clone(), value.clone());
        Decision::Commit(batch)
    };
    write(store, WriteSet::default(), &mut decide).await.map(drop)
}

async fn put(store: &Inner, key: String, value: Value) {
    try_put(store, key, value).await.unwrap();
}

/// Polls once or twice, as an executor does that has nothing else to run.
fn poll_twice(future: impl Future<Output = ()>) -> Option<()> {
    let mut future = Box::pin(future);
    future.as_mut().now_or_never().or_else(|| future.as_mut().now_or_never())
}

fn wait_until(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came to hold");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn os() -> Options {
    Options { durability: Durability::Os, ..Options::default() }
}

#[test]
fn a_leader_commits_its_own_write_and_those_of_others() {
    // There is no commit thread that could.
    let opened = Opened::new(os());
    let mut first = Box::pin(put(&opened.store, "a".into(), Value::from("1")));
    assert_eq!(first.as_mut().now_or_never(), None, "it lets others queue first");
    assert_eq!(poll_twice(put(&opened.store, "b".into(), Value::from("2"))), Some(()));
    assert_eq!(opened.read("a"), Some(Value::from("1")));
    assert_eq!(opened.read("b"), Some(Value::from("2")));
    assert_eq!(first.as_mut().now_or_never(), Some(()));
    assert_eq!(opened.store.commit_groups.load(Ordering::Relaxed), 1);
}

#[test]
fn a_queued_write_is_committed_even_if_its_caller_drops_it() {
    for durability in [Durability::Os, Durability::Sync] {
        let mut opened = Opened::new(Options { durability, ..Options::default() });
        opened.start_commit_thread();
        assert_eq!(put(&opened.store, "a".into(), Value::from("1")).now_or_never(), None);
        wait_until(|| opened.read("a").is_some());
    }
}

#[test]
fn a_write_that_meets_another_leader_is_committed_by_the_commit_thread() {
    let mut opened = Opened::new(os());
    opened.start_commit_thread();
    let leadership = opened.store.leader_lock.lock();
    assert_eq!(poll_twice(put(&opened.store, "a".into(), Value::from("1"))), None);
    unlock(&opened.store, leadership);
    wait_until(|| opened.read("a").is_some());
}

#[test]
fn a_large_group_is_left_to_the_commit_thread() {
    let mut opened = Opened::new(os());
    let large = Value::from(vec![0; SMALL_GROUP_BYTES_MAX]);
    assert_eq!(poll_twice(put(&opened.store, "a".into(), large)), None);
    assert_eq!(opened.read("a"), None);
    opened.start_commit_thread();
    wait_until(|| opened.read("a").is_some());
}

#[test]
fn writers_do_not_lead_after_a_slow_commit() {
    let mut opened = Opened::new(os());
    let set_slow = |at: Option<Instant>| opened.with_leader(|leader| leader.slow_at = at);
    // Ahead, so that this time does not end, however long this takes.
    let ahead = Instant::now() + Duration::from_secs(60 * 60);
    set_slow(Some(ahead));
    assert_eq!(poll_twice(put(&opened.store, "a".into(), Value::from("1"))), None);
    set_slow(Instant::now().checked_sub(NO_WRITER_LEADS_FOR));
    assert_eq!(poll_twice(put(&opened.store, "b".into(), Value::from("1"))), Some(()));
    assert!(opened.read("a").is_some());
    set_slow(Some(ahead));
    opened.start_commit_thread();
    block_on(put(&opened.store, "c".into(), Value::from("1")));
}

/// Memtables this small fill faster than they can be flushed, so RocksDB stalls writes.
#[test]
fn stalled_groups_are_committed_in_order() {
    let mut opened = Opened::new(Options { write_buffer_bytes: 64 << 10, ..os() });
    opened.start_commit_thread();
    let (mut has_stalled, mut number) = (false, 0_u32);
    while !has_stalled || number % 100 != 0 {
        assert!(number < 20_000, "RocksDB never stalled a write");
        number += 1;
        // The second shows the order: it must not overtake the first.
        let mut value = number.to_be_bytes().to_vec();
        let earlier = Value::from([&[0; 30_000][..], &value].concat());
        value.resize(30_000, 1);
        let mut writes = [earlier, Value::from(value.clone())]
            .map(|value| Box::pin(put(&opened.store, "k".into(), value)));
        let mut done = [false; 2];
        for (write, done) in writes.iter_mut().zip(&mut done) {
            *done =
                write.as_mut().now_or_never().is_some() || write.as_mut().now_or_never().is_some();
        }
        has_stalled |= opened.has_stalled();
        for (write, done) in writes.into_iter().zip(done) {
            if !done {
                block_on(write);
            }
        }
        assert_eq!(opened.read("k"), Some(Value::from(value)), "after {number}");
    }
}

/// A store whose last group RocksDB stalls, and the key that this group puts.
fn stalled() -> (Opened, String) {
    let opened = Opened::new(Options { write_buffer_bytes: 64 << 10, ..os() });
    for number in 1..20_000 {
        let key = format!("k{number}");
        // No commit thread would go on after a commit that was slow because the machine is busy.
        opened.with_leader(|leader| leader.slow_at = None);
        poll_twice(put(&opened.store, key.clone(), Value::from(vec![0; 30_000])));
        if opened.has_stalled() {
            return (opened, key);
        }
    }
    panic!("RocksDB never stalled a write")
}

/// A stalled group must not be forgotten because the store is closed meanwhile.
#[test]
fn a_stalled_group_is_committed_at_the_end() {
    let (mut opened, key) = stalled();
    // As if the commit thread had found nothing to do just before.
    opened.store.queue.take();
    opened.store.queue.close();
    let before = opened.store.published.get().unwrap();
    opened.start_commit_thread();
    opened.commit_thread.take().unwrap().join().unwrap();
    assert_eq!(before.read(key.as_bytes()).unwrap(), None);
    assert!(opened.read(&key).is_some());
}

/// Earlier writes may be missing from the log by then.
#[test]
fn a_stalled_group_is_not_committed_after_a_failure() {
    let (mut opened, key) = stalled();
    fail_after_panic(&opened.store, "a defect");
    opened.store.queue.close();
    opened.start_commit_thread();
    opened.commit_thread.take().unwrap().join().unwrap();
    let snapshot = opened.store.published.get().unwrap();
    assert_eq!(snapshot.database().rocks().get(key.as_bytes()).unwrap(), None);
}

/// RocksDB has refused the group, so its caller learns that nothing was written.
#[test]
fn a_stalled_write_fails_for_certain_when_the_store_recovers() {
    let mut opened = Opened::new(Options { write_buffer_bytes: 64 << 10, ..os() });
    let store = Arc::clone(&opened.store);
    let mut waiting = None;
    for number in 1..20_000 {
        opened.with_leader(|leader| leader.slow_at = None);
        let value = Value::from(vec![0; 30_000]);
        let mut write = Box::pin(try_put(&store, format!("k{number}"), value));
        let is_done =
            write.as_mut().now_or_never().is_some() || write.as_mut().now_or_never().is_some();
        if !is_done && opened.has_stalled() {
            waiting = Some(write);
            break;
        }
    }
    fail_after_panic(&store, "a defect");
    opened.start_commit_thread();
    let outcome = block_on(waiting.expect("RocksDB never stalled a write"));
    assert!(matches!(outcome, Err(Error::Io { .. })), "{outcome:?}");
}

/// What a defect left behind must not be committed, nor may its thread end.
#[test]
fn after_a_commit_that_panics_writes_are_refused_until_the_store_has_recovered() {
    let mut opened = Opened::new(os());
    let leadership = opened.store.leader_lock.lock();
    lead(&opened.store, leadership, |_| panic!("a defect, as this test wants it"));
    assert!(opened.store.queue.failure().is_some());
    opened.start_commit_thread();
    wait_until(|| opened.store.queue.failure().is_none());
    block_on(put(&opened.store, "a".into(), Value::from("1")));
}

/// A store that has failed may come back with other groups than those it has published. Nobody follows it before.
#[test]
fn a_failed_store_is_followed_only_after_it_has_recovered() {
    let mut opened = Opened::new(os());
    let follow = |store: &Inner| open_log_tap(store, 1_000, Stamp::default()).map(drop);
    follow(&opened.store).unwrap();
    let leadership = opened.store.leader_lock.lock();
    lead(&opened.store, leadership, |_| panic!("a defect, as this test wants it"));
    assert!(!opened.store.log_tap.is_on());
    let refused = follow(&opened.store);
    assert!(matches!(refused, Err(Error::WritesRefused { .. })), "{refused:?}");
    assert!(!opened.store.log_tap.is_on());
    opened.start_commit_thread();
    wait_until(|| follow(&opened.store).is_ok());
    assert_eq!(opened.store.queue.failure(), None);
}

/// What the sync thread held when it ended must not count as unanswered forever.
#[test]
fn the_store_recovers_from_the_end_of_its_sync_thread() {
    let options = Options { unanswered_writes_max: 2, ..Options::default() };
    let mut opened = Opened::with_sync_thread(options, |store| {
        let store = Arc::clone(store);
        let defect = |written: &mpsc::Receiver<CommitGroup>| {
            let _group = written.recv().unwrap();
            panic!("a defect, as this test wants it");
        };
        Some(SyncThread::start(defect, move || fail_after_panic(&store, "a defect")).unwrap())
    });
    opened.start_commit_thread();
    let put = || block_on(try_put(&opened.store, "k".into(), Value::from("v")));
    let failed = put();
    assert!(matches!(failed, Err(Error::Uncertain { .. })), "{failed:?}");
    wait_until(|| put().is_ok());
    assert_eq!(opened.store.statistics().write_failure, None);
    put().unwrap();
}

/// A wake-up that is lost would leave a thread waiting forever.
#[test]
fn no_write_is_forgotten_when_many_threads_write() {
    for durability in [Durability::Os, Durability::Sync] {
        let mut opened = Opened::new(Options { durability, ..Options::default() });
        opened.start_commit_thread();
        let store = &opened.store;
        std::thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || {
                    for number in 0..500 {
                        let key = format!("{thread}-{number}");
                        block_on(put(store, key.clone(), Value::from("v")));
                        let found = store.published.get().unwrap().read(key.as_bytes()).unwrap();
                        assert!(found.is_some());
                    }
                });
            }
        });
        wait_until(|| store.queue.unanswered_writes() == 0);
    }
}
