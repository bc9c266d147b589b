//! Whose turn it is to commit.
//!
//! A writer commits what waits by itself, its own batch and those of others. That takes some microseconds, while having a
//! thread do it means to wake that thread and to be woken by it. Only one at a time may: whoever finds the turn taken
//! leaves its batch to whoever has it, which calls the committer's thread when it is done. So does a writer that
//! would have to wait long, because there is much to commit or because RocksDB holds writes up: its thread has other
//! requests to answer.
//!
//! **Invariant:** groups are taken from the queue, written and handed on by whoever has the turn, so all of this happens in the
//! commit order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use zenobe_store::Error;

use crate::database::Database;
use crate::failure;
use crate::group::Group;
use crate::log_writer::{Failed, LogWriter};
use crate::settler::{Settler, settle};
use crate::shared::Shared;

/// What it takes to commit.
pub(crate) struct Means {
    pub writer: LogWriter,
    /// What makes groups durable, if they are not by having been written.
    settler: Option<Settler>,
    /// When a writer's commit last took long, or would have.
    slow_at: Option<Instant>,
}

/// A commit that takes longer held up everything else on its writer's thread: the system makes writes wait.
const SLOW_AFTER: Duration = Duration::from_millis(20);

/// For so long after a slow commit, writers leave committing to the committer.
const CAUTION: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Turns {
    /// Absent until the committer begins, while it recovers, and after its end.
    means: Mutex<Option<Means>>,
    /// Whether somebody found the turn taken.
    is_wanted: AtomicBool,
}

pub(crate) struct Turn<'a> {
    shared: &'a Shared,
    /// `None` only while this is dropped.
    means: Option<MutexGuard<'a, Option<Means>>>,
}

impl<'a> Turn<'a> {
    pub fn wait(shared: &'a Shared) -> Turn<'a> {
        Turn { shared, means: Some(shared.turns.means.lock()) }
    }

    /// If this is `None`, whoever has the turn will call the committer.
    fn try_take(shared: &'a Shared) -> Option<Turn<'a>> {
        let turns = &shared.turns;
        let means = turns.means.try_lock().or_else(|| {
            turns.is_wanted.store(true, Ordering::Relaxed);
            // Either this finds the turn free, or whoever ends it finds that it is wanted.
            fence(Ordering::SeqCst);
            let means = turns.means.try_lock()?;
            // What others want is enqueued by now, so this turn serves them.
            turns.is_wanted.store(false, Ordering::Relaxed);
            Some(means)
        })?;
        Some(Turn { shared, means: Some(means) })
    }

    pub fn means(&mut self) -> &mut Option<Means> {
        self.means.as_mut().expect("a turn has its lock until it is dropped")
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.means.take();
        fence(Ordering::SeqCst);
        if self.shared.turns.is_wanted.swap(false, Ordering::Relaxed) {
            self.shared.queue.call_committer();
        }
    }
}

/// Commits what waits, or sees to it that another thread does.
pub(crate) fn commit_waiting(shared: &Shared) {
    if let Some(mut turn) = Turn::try_take(shared) {
        turn.commit(commit_at_once);
    }
}

/// Commits what waits, however long it takes.
pub(crate) fn commit_patiently(shared: &Shared) {
    Turn::wait(shared).commit(commit_in_any_case);
}

impl Turn<'_> {
    fn commit(&mut self, commit: impl FnOnce(&Shared, &mut Means)) {
        let shared = self.shared;
        // Without means there will be a call for the committer when it has them.
        let Some(means) = self.means() else { return };
        // A defect must neither take down a thread that serves others, nor leave writers waiting for ever: it disables
        // writes like a failing disk, before anybody else can commit on what it left behind.
        if catch_unwind(AssertUnwindSafe(|| commit(shared, means))).is_err() {
            let detail = "a commit panicked".to_owned();
            failure::disable_writes(shared, &Error::Io { detail }, Vec::new());
        }
    }
}

fn commit_at_once(shared: &Shared, means: &mut Means) {
    let begin = Instant::now();
    let batches = match means.is_prompt(begin) {
        true => shared.queue.take_small_group(),
        false => None,
    };
    let Some(batches) = batches else { return shared.queue.call_committer() };
    if batches.is_empty() {
        return;
    }
    let written = means.writer.write_at_once(batches);
    let end = Instant::now();
    if end - begin > SLOW_AFTER || means.writer.has_postponed() {
        means.slow_at = Some(end);
    }
    match written {
        Ok(Some(group)) => means.settle(shared, group),
        Ok(None) => shared.queue.call_committer(),
        Err(failed) => failed.disable_writes(shared),
    }
}

fn commit_in_any_case(shared: &Shared, means: &mut Means) {
    let written = match means.writer.write_postponed() {
        Some(written) => written,
        None => match shared.queue.take_group() {
            batches if batches.is_empty() => return,
            batches => means.writer.write(batches),
        },
    };
    match written {
        Ok(group) => means.settle(shared, group),
        Err(failed) => failed.disable_writes(shared),
    }
}

impl Means {
    pub fn new(writer: LogWriter, settler: Option<Settler>) -> Means {
        Means { writer, settler, slow_at: None }
    }

    /// Ends the use of a database that has failed. Once everything that was written has been dealt with, nothing of it is published
    /// or released any more.
    pub fn into_database(self) -> Arc<Database> {
        drop(self.settler);
        self.writer.into_database()
    }

    /// Whether what is written now probably doesn't have to wait.
    fn is_prompt(&self, now: Instant) -> bool {
        let is_slow = self.slow_at.is_some_and(|slow_at| now < slow_at + CAUTION);
        !is_slow && !self.writer.has_postponed()
    }

    fn settle(&self, shared: &Shared, group: Group) {
        match &self.settler {
            Some(settler) => settler.settle(group),
            None => settle(shared, vec![group]),
        }
    }
}

impl Failed {
    fn disable_writes(self, shared: &Shared) {
        let group = Group::without_outcome(self.batches);
        failure::disable_writes(shared, &self.error, vec![group]);
    }
}

#[cfg(test)]
mod tests {
    use super::{CAUTION, SLOW_AFTER, Turn};
    use crate::committer::Committer;
    use crate::options::{Durability, Options};
    use crate::queue::SELF_SERVICE_BYTES_MAX;
    use crate::shared::Shared;
    use crate::write::write;
    use futures_util::FutureExt;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::thread::JoinHandle;
    use std::time::{Duration, Instant};
    use zenobe_store::conformance::block_on;
    use zenobe_store::{Batch, Decision, Value, WriteSet};

    struct Opened {
        shared: Arc<Shared>,
        /// Begins when it is told to.
        committer: Option<Committer>,
        thread: Option<JoinHandle<()>>,
        _directory: tempfile::TempDir,
    }

    impl Opened {
        fn new(options: Options) -> Opened {
            let directory = tempfile::tempdir().unwrap();
            let shared = Arc::new(Shared::open(directory.path(), options).unwrap());
            let committer = Some(Committer::new(Arc::clone(&shared)).unwrap());
            Opened { shared, committer, thread: None, _directory: directory }
        }

        fn start_committer(&mut self) {
            let committer = self.committer.take().unwrap();
            self.thread = Some(std::thread::spawn(move || committer.run()));
        }

        fn read(&self, key: &str) -> Option<Value> {
            self.shared.published().unwrap().read(key.as_bytes()).unwrap()
        }

        fn has_postponed(&self) -> bool {
            let mut turn = Turn::wait(&self.shared);
            turn.means().as_ref().is_some_and(|means| means.writer.has_postponed())
        }
    }

    impl Drop for Opened {
        fn drop(&mut self) {
            self.shared.queue.close();
            self.thread.take().map(JoinHandle::join);
        }
    }

    async fn put(shared: &Shared, key: String, value: Value) {
        let mut decide = |_: &[_]| {
            let mut batch = Batch::new();
            batch.put(key.clone(), value.clone());
            Decision::Commit(batch)
        };
        write(shared, WriteSet::default(), &mut decide).await.unwrap();
    }

    /// Polls once or twice, as an executor does that has nothing else to run.
    fn poll_twice(future: impl Future<Output = ()>) -> Option<()> {
        let mut future = Box::pin(future);
        future.as_mut().now_or_never().or_else(|| future.as_mut().now_or_never())
    }

    fn wait_until(holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < Duration::from_secs(20), "it never came to hold");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn os() -> Options {
        Options { durability: Durability::Os, ..Options::default() }
    }

    #[test]
    fn a_writer_commits_its_own_write_and_those_of_others() {
        // Nobody else could.
        let opened = Opened::new(os());
        let mut first = Box::pin(put(&opened.shared, "a".into(), Value::from("1")));
        assert_eq!(first.as_mut().now_or_never(), None, "others have their turn first");
        assert_eq!(poll_twice(put(&opened.shared, "b".into(), Value::from("2"))), Some(()));
        assert_eq!(opened.read("a"), Some(Value::from("1")));
        assert_eq!(opened.read("b"), Some(Value::from("2")));
        assert_eq!(first.as_mut().now_or_never(), Some(()));
        assert_eq!(opened.shared.commit_groups.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_is_enqueued_is_committed_even_if_nobody_waits_for_it() {
        for durability in [Durability::Os, Durability::Sync] {
            let mut opened = Opened::new(Options { durability, ..Options::default() });
            opened.start_committer();
            assert_eq!(put(&opened.shared, "a".into(), Value::from("1")).now_or_never(), None);
            wait_until(|| opened.read("a").is_some());
        }
    }

    #[test]
    fn whoever_finds_the_turn_taken_is_served_all_the_same() {
        let mut opened = Opened::new(os());
        opened.start_committer();
        let taken = Turn::wait(&opened.shared);
        assert_eq!(poll_twice(put(&opened.shared, "a".into(), Value::from("1"))), None);
        drop(taken);
        wait_until(|| opened.read("a").is_some());
    }

    #[test]
    fn much_at_once_is_left_to_the_committer() {
        let mut opened = Opened::new(os());
        let large = Value::from(vec![0; SELF_SERVICE_BYTES_MAX]);
        assert_eq!(poll_twice(put(&opened.shared, "a".into(), large)), None);
        assert_eq!(opened.read("a"), None);
        opened.start_committer();
        wait_until(|| opened.read("a").is_some());
    }

    #[test]
    fn writers_are_cautious_after_a_slow_commit() {
        let mut opened = Opened::new(os());
        let set_slow = |ago: Duration| {
            let mut turn = Turn::wait(&opened.shared);
            turn.means().as_mut().unwrap().slow_at = Instant::now().checked_sub(ago);
        };
        set_slow(SLOW_AFTER);
        assert_eq!(poll_twice(put(&opened.shared, "a".into(), Value::from("1"))), None);
        set_slow(CAUTION);
        assert_eq!(poll_twice(put(&opened.shared, "b".into(), Value::from("1"))), Some(()));
        assert!(opened.read("a").is_some());
        set_slow(SLOW_AFTER);
        opened.start_committer();
        block_on(put(&opened.shared, "c".into(), Value::from("1")));
    }

    /// Memtables this small fill faster than they can be flushed, so RocksDB holds writes up.
    #[test]
    fn what_rocksdb_holds_up_is_committed_in_order() {
        let mut opened = Opened::new(Options { write_buffer_bytes: 64 << 10, ..os() });
        opened.start_committer();
        let (mut was_held_up, mut number) = (false, 0_u32);
        while !was_held_up || number % 100 != 0 {
            assert!(number < 20_000, "RocksDB never held a write up");
            number += 1;
            // The second shows the order: it must not overtake the first.
            let mut value = number.to_be_bytes().to_vec();
            let earlier = Value::from([&[0; 30_000][..], &value].concat());
            value.resize(30_000, 1);
            let mut writes = [earlier, Value::from(value.clone())]
                .map(|value| Box::pin(put(&opened.shared, "k".into(), value)));
            let mut done = [false; 2];
            for (write, done) in writes.iter_mut().zip(&mut done) {
                *done = write.as_mut().now_or_never().is_some()
                    || write.as_mut().now_or_never().is_some();
            }
            was_held_up |= opened.has_postponed();
            for (write, done) in writes.into_iter().zip(done) {
                if !done {
                    block_on(write);
                }
            }
            assert_eq!(opened.read("k"), Some(Value::from(value)), "after {number}");
        }
    }

    /// Whoever is told to wait must not be forgotten because the store is closed meanwhile.
    #[test]
    fn what_was_postponed_is_committed_at_the_end() {
        let mut opened = Opened::new(Options { write_buffer_bytes: 64 << 10, ..os() });
        let mut last = 0;
        while !opened.has_postponed() {
            assert!(last < 20_000, "RocksDB never held a write up");
            last += 1;
            let write = put(&opened.shared, format!("k{last}"), Value::from(vec![0; 30_000]));
            poll_twice(write);
        }
        // As if the committer had found nothing to do just before.
        opened.shared.queue.take_group();
        opened.shared.queue.close();
        let view = opened.shared.published().unwrap();
        opened.start_committer();
        opened.thread.take().unwrap().join().unwrap();
        let key = format!("k{last}");
        assert_eq!(view.read(key.as_bytes()).unwrap(), None);
        assert!(opened.read(&key).is_some());
    }

    /// What a defect left behind must not be committed, nor may its thread end.
    #[test]
    fn a_commit_that_panics_disables_writes_until_the_store_has_recovered() {
        let mut opened = Opened::new(os());
        let mut turn = Turn::wait(&opened.shared);
        turn.commit(|_, _| panic!("a defect, as this test wants it"));
        assert!(opened.shared.queue.failure().is_some(), "before anyone else has a turn");
        drop(turn);
        opened.start_committer();
        wait_until(|| opened.shared.queue.failure().is_none());
        block_on(put(&opened.shared, "a".into(), Value::from("1")));
    }

    /// A wake-up that is lost would leave a thread waiting for ever.
    #[test]
    fn no_write_is_forgotten_when_many_threads_write() {
        for durability in [Durability::Os, Durability::Sync] {
            let mut opened = Opened::new(Options { durability, ..Options::default() });
            opened.start_committer();
            let shared = &opened.shared;
            std::thread::scope(|scope| {
                for thread in 0..8 {
                    scope.spawn(move || {
                        for number in 0..500 {
                            let key = format!("{thread}-{number}");
                            block_on(put(shared, key.clone(), Value::from("v")));
                            assert!(
                                shared.published().unwrap().read(key.as_bytes()).unwrap().is_some()
                            );
                        }
                    });
                }
            });
            wait_until(|| shared.queue.in_flight_batches() == 0);
        }
    }
}
