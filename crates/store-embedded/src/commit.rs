//! The commit path: how a write gets into the write-ahead log, onto the disk, to readers, and back to its caller.
//!
//! This file tells the whole story, in the order in which it happens. The store has two kinds of logs. The *write-ahead
//! log* is RocksDB's. *Append logs*, such as a stream's shards, are data like any other ([`Mutation::Append`]).
//!
//! ```text
//! writer        admit → lock keys → read → decide → queue → show in flight → unlock → yield → lead?
//! leader                                            take the queue → write to RocksDB → snapshot
//! sync thread                                                                        sync → publish → answer
//! ```
//!
//! 1. **A write arrives** ([`write`]). It fails if the store is closed, or refuses writes after a failure. It waits
//!    while writes are paused, and while too many writes have no answer yet: the queue bounds their number and their
//!    bytes. Then it gets a [`WriteTicket`], which holds the epoch in which it was admitted (each failure begins a new
//!    epoch). The ticket reserves nothing, so concurrent admissions can overshoot the bounds by their own size. The
//!    write holds no lock yet, so it blocks no other write.
//! 2. **It decides** ([`decide_and_queue`]). The write has *declared* its keys, and its *guards*: keys that it depends
//!    on, but does not write ([`WriteSet`]). It locks the keys exclusively and the guards shared, reads both, and asks
//!    the caller's closure what to write. A write that is queued but not published yet is *in flight*. A key that such
//!    a write has put or deleted is read from [`crate::in_flight`], any other key from the published snapshot. The
//!    queue gives each new mutation its *place*: a number, its position in the commit order ([`Queue`]). The new
//!    mutations are in flight themselves, so the next decision sees them. Then the locks are released. Nothing is
//!    awaited under a lock.
//!
//!    Only puts and deletes (of keys and of ranges) are visible in flight. Decisions do not see the other mutations until
//!    they are published: *appends*, which get the next number of their append log from the commit; *counters*, to which
//!    the commit adds; *stamped puts*, whose keys end with a *stamp*, the time of the commit; and changes to the ends of
//!    append logs and to *clocks*, each of which keeps the newest of its stamps ([`zenobe_store::stamp`]).
//!
//!    A *move* copies a store into another while the store is in use. At its end it pauses writes and hands over
//!    ([`crate::handover`]). Writes that are queued by then commit as always. A decision that would be queued during the
//!    pause is discarded, and the closure is called again after the pause.
//! 3. **A leader commits** ([`lead_if_free`]). The write yields once, so that other tasks on its thread can queue
//!    theirs. Then it tries to become the leader: there is only one at a time. The leader takes what is queued, its
//!    own write and those of others, as one [`CommitGroup`]. A writer takes the whole queue if that is at most 256
//!    KiB. Otherwise it leaves the queue to the *commit thread* (see below), whose groups end at about 8 MiB or 4,096
//!    writes, whichever comes first. The leader writes the group to RocksDB as one batch, which goes into the
//!    write-ahead log and the memtable atomically. Then it takes a snapshot, which nobody sees yet. (Under
//!    [`Durability::Sync`] the write-ahead log is a buffer in this process until it is synced, so `kill -9` loses
//!    whatever has not been synced.)
//! 4. **The sync thread makes groups durable** ([`sync_groups`]). One `fdatasync` covers all groups that were written
//!    before it. Meanwhile the next leader writes the next group. So the slower the disk, the more
//!    writes share a sync, without a timer. Under [`Durability::Os`] there is no sync thread: what RocksDB has
//!    written, the operating system has, and the leader publishes it.
//! 5. **Groups are published and answered** ([`publish`]). Readers get the snapshot of the last group. Then come
//!    two taps, each if it is on: the *change tap* gets the changed keys, for a move ([`crate::change_tap`]), and the
//!    *log tap* the bytes of the groups, for a backup ([`crate::log_tap`]). Then each waiting write gets its answer.
//!
//! A leader that is a writer must not keep its thread for long: the thread serves other requests. So there is a **commit
//! thread** ([`commit_thread`]). It leads
//!
//! - when the queue is too large for a writer, for as long as anything is left in it,
//! - when RocksDB stalls writes, and for a second after a stall or a writer's slow commit,
//! - when a write found another leader at work,
//! - when a caller dropped its write before it tried to lead,
//! - when the store has recovered, or is being closed, while writes are queued.
//!
//! It also recovers the store after a failure, and writes the *horizon* of an idle store. The horizon is the last
//! sequence number that is known to be durable. Each sync advances it to the last number that was written before the
//! sync began (under [`Durability::Os`] each write advances it). Each group that writes anything carries it into the
//! write-ahead log, so that a start can tell a damaged log from one that a crash has torn: a record at or before the
//! horizon must be there ([`crate::write_ahead_log`]).
//!
//! # What always holds
//!
//! - **One order.** The holder of the leader lock takes a group from the queue, writes it, and hands it on. So the
//!   queue, the write-ahead log, the syncs and the publications have the same order. If a write survives a crash, so does
//!   every write before it.
//! - **Readers see durable state only.** A snapshot is published after the sync that covers it. (Under
//!   [`Durability::Os`], *durable* means here and below: handed to the operating system.)
//! - **Writers see what is in flight.** So a decision may rest on a write that can still be lost. But then its own
//!   write comes later in the write-ahead log: a crash that loses the first loses the second too.
//! - **An answer does not rest on a lost write.** A write is answered after its group is durable. A write that changes
//!   nothing, because its condition failed, is queued as well if anything that it read was in flight: its answer
//!   waits for the groups before it. There is one exception: adding to a value that is not a counter fails at once, even
//!   if the value is in flight, because such a write must not be queued.
//! - **A failure fails everything unanswered** ([`fail`]). When writing or syncing fails, every write without an
//!   answer fails: with [`Error::Uncertain`] if it may be on disk, with [`Error::Io`] if it can't be. The in-flight
//!   values are dropped, and new writes are refused ([`Error::WritesRefused`]). Readers use the last published snapshot
//!   until the commit thread closes the database to open it again ([`crate::recovery`]). Then they wait, and fail if it
//!   cannot be opened. The *epoch* changes: a write that was admitted before the failure cannot be queued after it, and
//!   [`publish`] fails the groups of an earlier epoch. (A publication that began before the failure goes on: its groups
//!   are durable.) After the recovery, decisions rest on what the disk really holds.
//! - **Encoding a group can fail too.** It reads from the database the counters and the ends of append logs that are not
//!   in memory. A read that fails, or finds damage, is a failure of the store as well. The writes of the group get
//!   [`Error::Uncertain`], which is never wrong, only cautious: they did not get to the disk.
//! - **A panic counts as a failure.** If a leader, the sync thread or the commit thread panics, the waiting writes fail
//!   instead of waiting forever. The groups that the thread held are dropped, and the senders of their answers with
//!   them, so their writes get [`Error::Uncertain`]. [`Queue::recover`] resets the counts of unanswered writes, which
//!   still include them. After a panic of the commit thread, only a restart helps. (A panic in a decision is its
//!   caller's: nothing is queued by then.)

mod encode;
mod leader_lock;
mod queue;
mod sync_thread;
#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_channel::oneshot;
use parking_lot::MutexGuard;
use rocksdb::WriteBatch;
use zenobe_store::key_map::KeySet;
use zenobe_store::shipping::LogGroup;
use zenobe_store::{
    CommitOutcome, Decide, Decision, Error, Key, Mutation, Result, Stamp, Value, WriteSet,
    yield_now,
};

use crate::in_flight::InFlightValue;
use crate::inner::Inner;
use crate::numbers::Numbers;
use crate::options::Durability;
use crate::recovery;
use crate::rocks_database::{RocksDatabase, WriteAttempt};
use crate::snapshot::Snapshot;
use crate::write_ahead_log;

pub(crate) use self::leader_lock::LeaderLock;
pub(crate) use self::queue::Queue;
use self::queue::{AnswerReceiver, QueuedWrite, Task, WriteTicket};
use self::sync_thread::SyncThread;

/// A writer's commit that takes longer than this is slow: it has blocked everything else on its thread.
const SLOW_COMMIT: Duration = Duration::from_millis(20);

/// After a slow commit or a stall, only the commit thread leads for this long.
const NO_WRITER_LEADS_FOR: Duration = Duration::from_secs(1);

/// After this long without a publication, the commit thread writes the horizon into the write-ahead log.
const IDLE_AFTER: Duration = Duration::from_millis(100);

/// A write with more keys than this reads them in one pass of RocksDB instead of one by one.
const SINGLE_READS_MAX: usize = 32;

/// A write with more keys than this finds them by their hashes instead of comparing them one by one.
const COMPARED_KEYS_MAX: usize = 32;

// --- 1 and 2: a write arrives, decides, and is queued ---

pub(crate) async fn write(
    store: &Inner,
    set: WriteSet<'_>,
    decide: &mut Decide<'_>,
) -> Result<CommitOutcome> {
    let answer = loop {
        let ticket = poll_fn(|context| store.queue.poll_ticket(context)).await?;
        match decide_and_queue(store, ticket, set, decide)? {
            Decided::Queued(answer) => break answer,
            Decided::NothingToCommit => return Ok(CommitOutcome::default()),
            Decided::Paused => {}
        }
    };
    commit_queued(store, answer).await
}

/// The write that a move makes while writes are paused: it puts or deletes the seal, the row that says where the
/// store's content has gone.
pub(crate) async fn write_in_pause(
    store: &Inner,
    set: WriteSet<'_>,
    decide: &mut Decide<'_>,
) -> Result<CommitOutcome> {
    match decide_and_queue(store, store.queue.ticket_in_pause(), set, decide)? {
        Decided::Queued(answer) => commit_queued(store, answer).await,
        Decided::NothingToCommit => Ok(CommitOutcome::default()),
        Decided::Paused => unreachable!("its ticket ignores pauses"),
    }
}

async fn commit_queued(store: &Inner, mut answer: AnswerReceiver) -> Result<CommitOutcome> {
    let wake_if_dropped = WakeOnDrop(store);
    // Other tasks on this thread queue their writes now, and one commit serves them all.
    yield_now().await;
    // From here to the attempt to lead nothing is awaited, so this future cannot be dropped in between. Dropping the
    // guard would wake the commit thread for nothing.
    std::mem::forget(wake_if_dropped);
    let lost = |oneshot::Canceled| {
        Err(Error::Uncertain { detail: "the commit ended without an answer".to_owned() })
    };
    match answer.try_recv() {
        Ok(Some(outcome)) => return outcome,
        Ok(None) => lead_if_free(store),
        Err(canceled) => return lost(canceled),
    }
    answer.await.unwrap_or_else(lost)
}

/// Held by a queued write until it tries to lead. If its caller drops it before that, the commit thread leads in its
/// place.
struct WakeOnDrop<'a>(&'a Inner);

impl Drop for WakeOnDrop<'_> {
    fn drop(&mut self) {
        self.0.queue.wake_commit_thread();
    }
}

/// What became of a decision.
enum Decided {
    Queued(AnswerReceiver),
    /// It changes nothing, and read nothing that could still be lost.
    NothingToCommit,
    /// Writes are paused. Nothing is queued.
    Paused,
}

/// Everything that happens under the key locks.
fn decide_and_queue(
    store: &Inner,
    ticket: WriteTicket,
    set: WriteSet<'_>,
    decide: &mut Decide<'_>,
) -> Result<Decided> {
    let _locks = store.locks.lock(set);
    let (values, is_any_in_flight) = read(store, set)?;
    let mutations = match decide(&values) {
        Decision::Commit(changes) => changes.mutations,
        Decision::Abort => Vec::new(),
    };
    if mutations.is_empty() && !is_any_in_flight {
        return Ok(Decided::NothingToCommit);
    }
    // An addition to a value that is not a counter must fail now: once it is queued, others may build on it. The store
    // remembers which keys it has found to be counters (`checked_counters`), so that it rarely reads them here.
    let read_published = |key: &Key| store.published.without_waiting()?.read(key);
    store.checked_counters.check_additions(&mutations, &store.in_flight, read_published)?;
    let declared_puts = declared_puts(set, &mutations);
    let mutations: Arc<Vec<Mutation>> = Arc::new(mutations);
    let queued = store.queue.push(ticket, Arc::clone(&mutations), declared_puts)?;
    let Some((first_place, answer)) = queued else { return Ok(Decided::Paused) };
    // The write is queued before its values are in flight, because the queue gives them their places in the commit
    // order. No decision that declares these keys runs in between: they are still locked. If the write is published in
    // between, its places are retired, and `insert` leaves its values out.
    store.in_flight.insert(first_place, &mutations);
    store.checked_counters.forget_replaced(&mutations);
    Ok(Decided::Queued(answer))
}

/// The values of guards and keys, and whether one of them is still in flight.
fn read(store: &Inner, set: WriteSet<'_>) -> Result<(Vec<Option<Value>>, bool)> {
    let keys = || set.guards.iter().chain(set.keys);
    let in_flight: Vec<Option<InFlightValue>> =
        keys().map(|key| store.in_flight.get(key)).collect();
    // Loaded after looking up what is in flight, so that it contains what has been published since. A write that was
    // admitted before a failure may find no snapshot, because the database is being reopened. Then it fails with
    // `Error::WritesRefused`.
    let snapshot = store.published.without_waiting()?;
    let is_any_in_flight = in_flight.iter().any(Option::is_some);
    if in_flight.len() > SINGLE_READS_MAX {
        let others: Vec<&Key> =
            keys().zip(&in_flight).filter(|it| it.1.is_none()).map(|it| it.0).collect();
        let mut values_of_others = snapshot.read_batch(&others)?.into_iter();
        let value = |newest: Option<InFlightValue>| match newest {
            Some(newest) => newest.value,
            None => values_of_others.next().flatten(),
        };
        return Ok((in_flight.into_iter().map(value).collect(), is_any_in_flight));
    }
    let value = |(key, in_flight): (&Key, &Option<InFlightValue>)| match in_flight {
        Some(newest) => Ok(newest.value.clone()),
        None => snapshot.read(key),
    };
    let values = keys().zip(&in_flight).map(value).collect::<Result<_>>()?;
    Ok((values, is_any_in_flight))
}

/// For each mutation: does it put a declared key, rather than one the decision derived? The value cache keeps declared
/// keys, because a key that a caller names is likely to be named again. Derived rows, such as index entries, are mostly
/// scanned.
fn declared_puts(set: WriteSet<'_>, mutations: &[Mutation]) -> Vec<bool> {
    // Imports declare thousands of keys at once, and put them in the same order.
    let mut in_order = set.keys.iter().peekable();
    let mut many: Option<KeySet<&Key>> = None;
    let mut is_declared_put = |mutation: &Mutation| {
        let Mutation::Put { key, .. } = mutation else { return false };
        if in_order.next_if(|next| *next == key).is_some() {
            return true;
        }
        match set.keys.len() {
            ..=COMPARED_KEYS_MAX => set.keys.contains(key),
            _ => many.get_or_insert_with(|| set.keys.iter().collect()).contains(key),
        }
    };
    mutations.iter().map(&mut is_declared_put).collect()
}

// --- 3: a leader writes a group to RocksDB ---

/// The writes that a leader takes from the queue together. They become one RocksDB batch, or none if they change nothing.
/// Several groups may share a sync and a publication.
pub(crate) struct CommitGroup {
    writes: Vec<QueuedWrite>,
    /// The outcome of each write, in the same order.
    outcomes: Vec<CommitOutcome>,
    /// The counters that the group changes.
    counters: Vec<Key>,
    /// The last RocksDB sequence number that was known to be durable when the group was encoded.
    horizon: u64,
    /// The state right after the group. `None` until the group is written, and if it changes nothing.
    snapshot: Option<Arc<Snapshot>>,
    /// The newest stamp in the keys of the group, if there is one.
    newest_stamp: Stamp,
    /// What was written, if a backup ships it: the log tap gets it when the group is published.
    for_log_tap: Option<LogGroup>,
}

/// The state that only the leader uses. The leader lock ([`Inner::leader_lock`]) holds it.
pub(crate) struct LeaderState {
    database: Arc<RocksDatabase>,
    /// The values of counters and the last numbers of append logs, which only commits change.
    numbers: Numbers,
    /// The horizon that the write-ahead log carries. At first, the last sequence number that the database was opened with:
    /// opening flushes everything up to it into RocksDB's table files (SST), so no horizon has to protect it in the log.
    logged_horizon: u64,
    /// A group that RocksDB did not write, because it stalls writes. Its counters are summed and its appends numbered, so
    /// the commit thread must write it as it is, before any other.
    stalled: Option<(CommitGroup, WriteBatch)>,
    /// `None` where a write is durable once it is written.
    sync_thread: Option<SyncThread>,
    /// When a writer's commit was last slow or stalled.
    slow_at: Option<Instant>,
}

/// The leader lock, held. Its holder is the leader, or changes the leader's state.
type Leadership<'a> = MutexGuard<'a, Option<LeaderState>>;

/// A writer leads, unless there is a leader already: that one wakes the commit thread when it unlocks.
fn lead_if_free(store: &Inner) {
    if let Some(leadership) = store.leader_lock.try_lock() {
        lead(store, leadership, |leader| leader.write_group_briefly(store));
    }
}

/// Leads from the commit thread.
fn lead_patiently(store: &Inner) {
    lead(store, store.leader_lock.lock(), |leader| leader.write_group_patiently(store));
}

fn lead(store: &Inner, mut leadership: Leadership<'_>, write_group: impl FnOnce(&mut LeaderState)) {
    // There is no state while the store recovers. Recovery wakes the commit thread when it has made one.
    if let Some(leader) = &mut *leadership
        && catch_unwind(AssertUnwindSafe(|| write_group(leader))).is_err()
    {
        // Still under the lock, so that no other leader commits what the defect left behind.
        fail_after_panic(store, "a commit panicked");
    }
    unlock(store, leadership);
}

fn unlock(store: &Inner, leadership: Leadership<'_>) {
    let is_wanted = store.leader_lock.unlock(leadership);
    if is_wanted {
        store.queue.wake_commit_thread();
    }
}

impl LeaderState {
    fn new(database: Arc<RocksDatabase>, sync_thread: Option<SyncThread>) -> LeaderState {
        let logged_horizon = database.rocks().latest_sequence_number();
        let numbers = Numbers::default();
        LeaderState { database, numbers, logged_horizon, stalled: None, sync_thread, slow_at: None }
    }

    /// Writes what is queued to RocksDB and hands it on, or leaves it to the commit thread if that could block this
    /// thread.
    fn write_group_briefly(&mut self, store: &Inner) {
        let begin = Instant::now();
        let was_slow = self.slow_at.is_some_and(|slow_at| begin < slow_at + NO_WRITER_LEADS_FOR);
        let writes = match was_slow || self.stalled.is_some() {
            true => None,
            false => store.queue.take_if_small(),
        };
        let Some(writes) = writes else { return store.queue.wake_commit_thread() };
        let Some((group, batch)) = self.encode_or_finish(store, writes) else { return };
        // The attempt consumes the batch, and one that RocksDB stalls is needed again. So each is copied, whether or not the
        // log tap needs it too.
        let copy = batch.data().to_vec();
        let attempt = self.database.write_unless_stalled(batch);
        let end = Instant::now();
        if end - begin > SLOW_COMMIT || matches!(attempt, Ok(WriteAttempt::Stalled)) {
            self.slow_at = Some(end);
        }
        match attempt {
            Ok(WriteAttempt::Written) => self.after_write(store, group, Some(copy)),
            Ok(WriteAttempt::Stalled) => {
                self.stalled = Some((group, WriteBatch::from_data(&copy)));
                store.queue.wake_commit_thread();
            }
            Err(error) => fail(store, &error, vec![group]),
        }
    }

    /// Writes the stalled group to RocksDB, or else what is queued, and hands it on, however long it takes.
    fn write_group_patiently(&mut self, store: &Inner) {
        if store.queue.failure().is_some() {
            // The store has failed since this task was given, or was closed before it could recover. A stalled group was
            // encoded before the failure and must not be written after it. Only this thread writes stalled groups, so a
            // writer that leads need not look: after a failure it finds an empty queue, because the failure drained it.
            return self.fail_stalled(store);
        }
        let next = match self.stalled.take() {
            Some(stalled) => Some(stalled),
            None => self.encode_or_finish(store, store.queue.take()),
        };
        let Some((group, batch)) = next else { return };
        // This waits out a stall, so only the log tap needs a copy.
        let copy = store.log_tap.is_on().then(|| batch.data().to_vec());
        match self.database.write(batch) {
            Ok(()) => self.after_write(store, group, copy),
            Err(error) => fail(store, &error, vec![group]),
        }
    }

    /// Encodes writes as a group and its RocksDB batch. `None` if no batch is left to be written: there are no writes, or
    /// they change nothing (their group is handed on), or their group cannot be encoded (the store fails).
    fn encode_or_finish(
        &mut self,
        store: &Inner,
        writes: Vec<QueuedWrite>,
    ) -> Option<(CommitGroup, WriteBatch)> {
        if writes.is_empty() {
            return None;
        }
        let horizon = self.database.horizon();
        let mut group = CommitGroup::new(writes, horizon);
        match encode::encode(&mut group, &self.database, &mut self.numbers) {
            Ok(Some(batch)) => return Some((group, batch)),
            // Writes that change nothing. They are a group too, so that they are answered after the groups before.
            Ok(None) => self.hand_on(store, group),
            // The database could not be read: a counter, the end of an append log, or the last key.
            Err(error) => fail(store, &error, vec![group]),
        }
        None
    }

    /// After a group has been written: notes its horizon, keeps what the log tap needs, takes the snapshot, and hands the
    /// group on.
    fn after_write(&mut self, store: &Inner, mut group: CommitGroup, batch: Option<Vec<u8>>) {
        self.logged_horizon = group.horizon;
        self.numbers.forget_excess();
        if store.log_tap.is_on() {
            group.for_log_tap = batch.map(|batch| self.log_group(store, batch, group.newest_stamp));
        }
        let snapshot = Snapshot::new(Arc::clone(&self.database), Arc::clone(&store.value_cache));
        group.snapshot = Some(Arc::new(snapshot));
        self.hand_on(store, group);
    }

    /// The batch that has just been written, as a backup ships it. There is one leader, so its sequence numbers are the
    /// last.
    fn log_group(&self, store: &Inner, batch: Vec<u8>, newest_stamp: Stamp) -> LogGroup {
        let entries = write_ahead_log::entries_of(&batch);
        let last = self.database.rocks().latest_sequence_number();
        let first = (last + 1).saturating_sub(entries.into());
        LogGroup { first, entries, stamp: store.log_tap.stamp(newest_stamp), bytes: batch.into() }
    }

    fn hand_on(&self, store: &Inner, group: CommitGroup) {
        match &self.sync_thread {
            Some(sync_thread) => sync_thread.push(group),
            None => publish(store, vec![group]),
        }
    }

    /// Fails the stalled group, if there is one, after the store has failed. RocksDB refused it, so it is not on disk.
    fn fail_stalled(&mut self, store: &Inner) {
        if let Some((group, _)) = self.stalled.take() {
            let error = Error::Io { detail: failure_detail(store) };
            answer_with_error(store, &error, group.writes);
        }
    }

    /// Writes the horizon by itself, if the write-ahead log does not carry it. The next group would, but may never come.
    /// Without it, damage to the last groups would look like a torn tail. The record need not be synced: it only says
    /// that earlier groups are durable. If a crash loses it, they are still there, only checked less strictly.
    fn write_horizon_if_new(&mut self) -> Result<()> {
        let horizon = self.database.horizon();
        if horizon != self.logged_horizon {
            self.database.write_horizon(horizon)?;
            self.logged_horizon = horizon;
        }
        Ok(())
    }
}

impl CommitGroup {
    fn new(writes: Vec<QueuedWrite>, horizon: u64) -> CommitGroup {
        let (outcomes, counters) = (Vec::with_capacity(writes.len()), Vec::new());
        CommitGroup {
            writes,
            outcomes,
            counters,
            horizon,
            snapshot: None,
            newest_stamp: Stamp::default(),
            for_log_tap: None,
        }
    }
}

fn size_bytes(writes: &[QueuedWrite]) -> usize {
    writes.iter().map(|write| write.size_bytes).sum()
}

// --- 4: the sync thread makes groups durable ---

fn start_sync_thread(store: &Arc<Inner>) -> Result<Option<SyncThread>> {
    if store.options.durability == Durability::Os {
        return Ok(None);
    }
    let [store, store_after_panic] = [Arc::clone(store), Arc::clone(store)];
    let after_panic =
        move || fail_after_panic(&store_after_panic, "the thread that syncs the log panicked");
    SyncThread::start(move |written| sync_groups(&store, written), after_panic).map(Some)
}

fn sync_groups(store: &Inner, written: &mpsc::Receiver<CommitGroup>) {
    while let Ok(first) = written.recv() {
        // Take every group that was written during the last sync.
        let groups: Vec<CommitGroup> = iter::once(first).chain(written.try_iter()).collect();
        let synced = match newest_snapshot(&groups) {
            Some(snapshot) => snapshot.database().sync_log(),
            // These groups wrote nothing, because their writes change nothing. The groups before them have been synced, or
            // their sync has failed.
            None => Ok(()),
        };
        match synced {
            Ok(()) => publish(store, groups),
            // The thread goes on with the groups that were written before the failure. Their sync may succeed, but their
            // epoch is the old one, so `publish` does not show them to readers.
            Err(error) => fail(store, &error, groups),
        }
    }
}

fn newest_snapshot(groups: &[CommitGroup]) -> Option<&Arc<Snapshot>> {
    groups.iter().rev().find_map(|group| group.snapshot.as_ref())
}

// --- 5: groups are published, and their writes answered ---

/// Shows durable groups to readers and answers their writes. All groups before them have been published or have
/// failed.
///
/// The order matters. The cache changes before the snapshot is published, so that it never shows a reader an older
/// value. The in-flight values retire after that, so that every decision finds a value in one of the two. Answers
/// come last, so that callers read what they wrote.
///
/// A write leaves in three steps. `in_flight.retire` hides its values from decisions, `in_flight.free` frees their
/// memory, and `queue.release` lets other writes be admitted in its place.
fn publish(store: &Inner, groups: Vec<CommitGroup>) {
    let epoch = store.queue.epoch();
    let is_current = |group: &CommitGroup| group.writes.iter().all(|write| write.epoch == epoch);
    let (mut groups, stale): (Vec<CommitGroup>, Vec<CommitGroup>) =
        groups.into_iter().partition(is_current);
    if !stale.is_empty() {
        // A failure came in between. Recovery determines whether these are durable.
        let error = Error::Uncertain { detail: failure_detail(store) };
        stale.into_iter().for_each(|group| answer_with_error(store, &error, group.writes));
    }
    if let Some(snapshot) = newest_snapshot(&groups) {
        groups.iter().for_each(|group| update_value_cache(store, group));
        store.published.publish(Arc::clone(snapshot));
        // Two taps. The change tap names the changed keys, for a move. It comes after the publication, so that the move can
        // read their values, and before the answers. The log tap has the bytes of the groups, for backups.
        if store.change_tap.is_on() {
            groups.iter().for_each(|group| record_changes(store, group));
        }
        if store.log_tap.is_on() {
            let written = groups.iter_mut().filter_map(|group| group.for_log_tap.take());
            written.for_each(|group| store.log_tap.push(group));
        }
    }
    if let Some(last) = groups.last().and_then(|group| group.writes.last()) {
        store.in_flight.retire(last.last_place);
    }
    groups.into_iter().for_each(|group| answer(store, group));
}

/// The cache must not hold anything older than the snapshot that is about to be published.
fn update_value_cache(store: &Inner, group: &CommitGroup) {
    let Some(snapshot) = &group.snapshot else { return };
    for write in &group.writes {
        let mutations = write.mutations.iter().zip(write.declared_puts.iter().copied());
        store.value_cache.change(snapshot.version(), mutations);
    }
    for counter in &group.counters {
        store.value_cache.forget(snapshot.version(), counter);
    }
}

/// Tells a move which keys the group has changed.
fn record_changes(store: &Inner, group: &CommitGroup) {
    for (write, outcome) in group.writes.iter().zip(&group.outcomes) {
        store.change_tap.record(&write.mutations, outcome);
    }
}

fn answer(store: &Inner, group: CommitGroup) {
    let (count, size_bytes) = (group.writes.len(), size_bytes(&group.writes));
    // Counted before the answers, so that a caller finds its own write in the statistics.
    let changing = group.writes.iter().filter(|write| !write.mutations.is_empty()).count();
    store.commit_groups.fetch_add(u64::from(group.snapshot.is_some()), Ordering::Relaxed);
    store.committed_writes.fetch_add(changing as u64, Ordering::Relaxed);
    let mut retired = Vec::with_capacity(count);
    for (write, outcome) in group.writes.into_iter().zip(group.outcomes) {
        // The caller may have dropped its write.
        let _ = write.answer.send(Ok(outcome));
        retired.push(write.mutations);
    }
    // After the answers, because this only frees memory.
    retired.iter().for_each(|mutations| store.in_flight.free(mutations));
    store.queue.release(count, size_bytes);
}

// --- A failure ---

/// Fails these groups and all that is queued, and refuses new writes until the store has recovered. Groups that the sync
/// thread has, and one that a leader is writing at this moment, fail in [`publish`], because they are from an earlier
/// epoch. The commit thread fails a stalled group ([`LeaderState::fail_stalled`]) before it recovers the store, or when
/// it ends.
fn fail(store: &Inner, error: &Error, groups: Vec<CommitGroup>) {
    tracing::error!("the store has failed and refuses writes: {error}");
    let (queued, last_place) = store.queue.fail(error.to_string());
    // Recovery may find more in the write-ahead log than was published.
    store.change_tap.lose();
    store.log_tap.lose();
    // Hides the lost values from new decisions, even those that a queued write has yet to insert. A decision that has
    // seen them already has the old epoch, so `Queue::push` refuses it.
    store.in_flight.retire(last_place);
    store.in_flight.free_all();
    // A counter may have been found in a lost value.
    store.checked_counters.clear();
    let detail = error.to_string();
    let uncertain = Error::Uncertain { detail: detail.clone() };
    groups.into_iter().for_each(|group| answer_with_error(store, &uncertain, group.writes));
    // What was still queued never reached RocksDB.
    answer_with_error(store, &Error::Io { detail }, queued);
}

/// Why the store has failed, for the errors of the writes that it takes with it. There is a reason whenever this is
/// called: recovery clears it only after the last group of the failed epoch has been answered. The other text is in case
/// of a defect.
fn failure_detail(store: &Inner) -> String {
    store.queue.failure().unwrap_or_else(|| "an earlier write failed".to_owned())
}

/// After a panic, no write may wait forever, and nothing may be committed on top of what the panic left behind. So it is
/// handled like a failing disk. The groups that the thread held are not answered here: they are dropped, and their writes
/// notice that.
fn fail_after_panic(store: &Inner, detail: &str) {
    fail(store, &Error::Io { detail: detail.to_owned() }, Vec::new());
}

/// Answers the writes of a group, or those that were queued. If the error is [`Error::Uncertain`], recovery may find them
/// on disk or not.
fn answer_with_error(store: &Inner, error: &Error, writes: Vec<QueuedWrite>) {
    let (count, size_bytes) = (writes.len(), size_bytes(&writes));
    for write in writes {
        let _ = write.answer.send(Err(error.clone()));
    }
    store.queue.release(count, size_bytes);
}

// --- The commit thread leads, writes the horizon, and recovers the store ---

/// Makes the first leader's state and starts the commit thread.
pub(crate) fn start(store: &Arc<Inner>) -> Result<JoinHandle<()>> {
    let database = Arc::clone(store.published.without_waiting()?.database());
    replace_leader_state(store, Some(LeaderState::new(database, start_sync_thread(store)?)));
    let store_of_thread = Arc::clone(store);
    crate::spawn("zenobe-commit", move || run_commit_thread(&store_of_thread))
        .inspect_err(|_| drop(replace_leader_state(store, None)))
}

fn run_commit_thread(store: &Arc<Inner>) {
    if catch_unwind(AssertUnwindSafe(|| commit_thread(store))).is_err() {
        fail_after_panic(store, "the commit thread panicked; restart the server");
    }
    // Dropping the state joins the sync thread, which first syncs what is left. If the store was closed without a failure,
    // it publishes that too. After a failure, `publish` fails it.
    drop(replace_leader_state(store, None));
}

fn commit_thread(store: &Arc<Inner>) {
    loop {
        match store.queue.next_task(IDLE_AFTER) {
            Task::Lead => lead_patiently(store),
            Task::WriteHorizon { answered_groups } => write_horizon(store, answered_groups),
            Task::Recover => match recover(store) {
                Ok(()) => {}
                Err(ClosedBeforeRecovery) => return,
            },
            // The queue is empty, but a stalled group may be left.
            Task::Stop => return lead_patiently(store),
        }
    }
}

fn write_horizon(store: &Inner, answered_groups: u64) {
    let mut leadership = store.leader_lock.lock();
    match leadership.as_mut().map_or(Ok(()), LeaderState::write_horizon_if_new) {
        Ok(()) => store.queue.record_written_horizon(answered_groups),
        // Still under the lock, so that no other leader commits after the failure.
        Err(error) => fail(store, &error, Vec::new()),
    }
    unlock(store, leadership);
}

/// The store was closed before it had recovered.
struct ClosedBeforeRecovery;

/// Reopens the database, which accepts writes again, and replaces the leader's state.
fn recover(store: &Arc<Inner>) -> Result<(), ClosedBeforeRecovery> {
    // The state is always there: only this thread takes it out, and it puts the next one in or ends.
    let mut failed = replace_leader_state(store, None).ok_or(ClosedBeforeRecovery)?;
    failed.fail_stalled(store);
    let LeaderState { database, sync_thread, .. } = failed;
    // Once the sync thread has ended, nothing of the failed database is published any more.
    drop(sync_thread);
    // The thread is started before the database is reopened, because starting it can fail and is tried again until the
    // store is closed. Once the database is reopened, the store accepts writes, which cannot be committed before the
    // leader's state is there.
    let sync_thread = restart_sync_thread(store)?;
    let reopened = recovery::reopen_when_possible(store, database);
    let database = reopened.ok_or(ClosedBeforeRecovery)?;
    replace_leader_state(store, Some(LeaderState::new(database, sync_thread)));
    // Writes that were queued before the state was there could not lead.
    store.queue.wake_commit_thread();
    Ok(())
}

fn restart_sync_thread(store: &Arc<Inner>) -> Result<Option<SyncThread>, ClosedBeforeRecovery> {
    loop {
        match start_sync_thread(store) {
            Ok(sync_thread) => return Ok(sync_thread),
            Err(error) => tracing::warn!("recovery failed; trying again in a second: {error}"),
        }
        if store.queue.wait_unless_closed(recovery::ATTEMPT_INTERVAL) {
            return Err(ClosedBeforeRecovery);
        }
    }
}

/// Puts a leader's state into the leader lock, and takes out the one that was there.
fn replace_leader_state(store: &Inner, next: Option<LeaderState>) -> Option<LeaderState> {
    let mut leadership = store.leader_lock.lock();
    let replaced = std::mem::replace(&mut *leadership, next);
    unlock(store, leadership);
    replaced
}

// --- The log tap opens between two groups ---

/// Has the log tap record every group that is written from now on. A leader holds the lock while it writes and stamps a
/// group, so the tap opens between two groups. Returns the number of this opening. The [`crate::LogFollower`], through
/// which a backup takes the groups, closes the tap with it.
pub(crate) fn open_log_tap(store: &Inner, bytes_max: usize, not_before: Stamp) -> Result<u64> {
    let leadership = store.leader_lock.lock();
    let opened = leadership.as_ref().map(|leader| {
        let last = leader.database.rocks().latest_sequence_number();
        store.log_tap.open(last, bytes_max, not_before)
    });
    // The tap is open by now. So a failure that came earlier shows here, and one that comes later closes the tap.
    let outcome = match (store.queue.failure(), opened) {
        (Some(detail), _) => {
            store.log_tap.lose();
            Err(Error::WritesRefused { detail })
        }
        (None, Some(opening)) => Ok(opening),
        // Closed, or reopened a moment ago and still without its leader's state. The shipper tries again in either case.
        (None, None) => Err(Error::Closed),
    };
    unlock(store, leadership);
    outcome
}

/// Waits until the group that is being written, if there is one, is written and has its stamp.
pub(crate) fn wait_until_leader_unlocks(store: &Inner) {
    unlock(store, store.leader_lock.lock());
}
