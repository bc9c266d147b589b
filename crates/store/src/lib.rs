//! The store seam: ordered bytes with atomic, isolated writes.
//!
//! **Invariant:** nothing in this crate, and nothing in a backend, knows what a table, an index or
//! an item is. The engine above maps its key space to plain bytes; a backend keeps those bytes in
//! order, commits batches atomically and serialisably, and reports honestly when a write is
//! durable.
//!
//! A backend implements [`Reader`] and [`Store`] and passes the suite in `conformance`, which only tests
//! compile (the feature `conformance`).

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod copying;
pub mod failing;
pub mod intercepting;
pub mod key_map;
pub mod layer;
pub mod memory;
pub mod recent;
pub mod redeciding;
pub mod shipping;
pub mod stamp;
pub mod yielding;

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, ready};

pub use stamp::{Stamp, StampedPut};

pub type Key = Bytes;
pub type Value = Bytes;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Which of a caller's keys are read together: those with the same prefix. A backend may track
/// which of its parts hold a prefix at all and skip the others. The rule never changes the result
/// of a read.
pub trait KeyPrefixes {
    /// A backend may store this with the data, so rules that differ must have different names.
    /// Contains no NUL.
    const NAME: &'static str;

    /// The prefix of a key, if the rule gives it one. All keys that begin with this prefix must
    /// have it. Must not panic.
    fn prefix_of(key: &[u8]) -> Option<&[u8]>;
}

/// Called once per entry of a scan, in scan order; [`ControlFlow::Break`] ends the scan after this
/// entry. The slices live only for the call, so a backend can lend its own buffers.
pub type Visitor<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send + 'a;

/// Decides a write from the values of its declared keys. `reads` holds the guards' values first,
/// then the keys' values, each in the order in which the [`WriteSet`] declares them. A backend may
/// call it more than once (one with optimistic transactions retries), so it must keep no state
/// between calls, except that it may overwrite its last answer.
pub type Decide<'a> = dyn FnMut(&[Option<Value>]) -> Decision + Send + 'a;

/// Reads from one consistent state of the store.
///
/// By default each scan method calls the other, so a backend must implement at least one.
pub trait Reader: Send + Sync {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>>;

    /// The values of `keys`, in their order, all from the same state.
    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>>;

    /// Visits the entries of `range` in key order (or in reverse), all from the same state, until
    /// the range ends or the visitor breaks. To continue later, scan again from the last key seen.
    fn scan<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        visit: &'a mut Visitor<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        self.scan_then_get(range, direction, None, visit, &[]).map(|read| read.map(drop)).boxed()
    }

    /// Scans, then reads `keys`: their values are from the state of the scan or from a later one.
    /// Visits at most `entries_max` entries. A store across a network does this in one exchange,
    /// and fetches no more than necessary.
    fn scan_then_get<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        entries_max: Option<usize>,
        visit: &'a mut Visitor<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        scan_first(self, range, direction, entries_max, visit, keys).boxed()
    }
}

/// A copy that follows a store, for reads that may be slightly stale.
pub trait Replica: Reader {
    /// Like [`Store::snapshot`], of the copy.
    fn snapshot(&self) -> Arc<dyn Reader>;
}

/// [`Reader::scan_then_get`] in two steps, for backends to which a step costs nothing.
pub async fn scan_first<R: Reader + ?Sized>(
    reader: &R,
    range: KeyRange,
    direction: Direction,
    entries_max: Option<usize>,
    visit: &mut Visitor<'_>,
    keys: &[Key],
) -> Result<Vec<Option<Value>>> {
    if entries_max != Some(0) {
        reader.scan(range, direction, &mut first_entries(entries_max, visit)).await?;
    }
    if keys.is_empty() { Ok(Vec::new()) } else { reader.get_many(keys).await }
}

/// A visitor that shows the first `entries_max` entries to `visit`, and then breaks. The limit must
/// not be zero: a visitor can't refuse its first entry.
pub fn first_entries(
    entries_max: Option<usize>,
    visit: &mut Visitor<'_>,
) -> impl FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send {
    let mut left = entries_max.unwrap_or(usize::MAX);
    move |key, value| {
        left -= 1;
        let flow = visit(key, value);
        if left == 0 { ControlFlow::Break(()) } else { flow }
    }
}

/// A store. Its own [`Reader`] methods read the latest *durable* state: what a reader sees has been
/// or is being acknowledged under the store's durability, and is never lost afterwards.
pub trait Store: Reader + 'static {
    /// A stable view of the latest durable state, for long scans, backups and multi-key reads. It
    /// is the state at this call or at the view's first read: a store across a network need not be
    /// asked earlier. Such a store may also end a view that is held for long; its reads then return
    /// [`Error::Unavailable`].
    fn snapshot(&self) -> Arc<dyn Reader>;

    /// Runs one serialisable read-decide-write cycle and resolves when its batch is durable.
    ///
    /// The write set is declared up front. No other write whose exclusive keys intersect this
    /// write's guards or keys is decided between this write's reads and its place in the commit
    /// order. Two writes that share only guards run side by side. A batch may put or delete three kinds
    /// of keys: those that its write set declares as `keys`, keys derived from these, and keys that only
    /// the holder of a declared key writes. Appends and additions to counters need no declaration. A write
    /// that puts or deletes a counter must declare a key that every write which adds to the counter has
    /// as a guard. Otherwise a concurrent addition may have no effect.
    ///
    /// If the returned future is dropped, the batch is either never decided or committed as usual.
    ///
    /// # Errors
    /// After any error but [`Error::Uncertain`], nothing was written.
    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<CommitOutcome>>;

    /// The ends of the logs whose keys are at or after `start`, in key order, at most `count_max` of
    /// them.
    fn log_ends<'a>(
        &'a self,
        start: &'a [u8],
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<(Key, LogEnd)>>>;

    /// Puts a row that says why the store must not be used any more, or deletes it
    /// ([`copying::Seal`]). A store that several processes share refuses the writes of all of them
    /// from then on.
    fn seal(&self, key: Key, value: Option<Value>) -> BoxFuture<'_, Result<()>> {
        put_or_delete(self, key, value).boxed()
    }

    /// Writes a consistent copy of the store into `directory`, which must not exist yet. The copy
    /// can be opened independently. Backends without files return [`Error::Unsupported`].
    fn checkpoint<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Result<()>>;

    /// Asks the backend to reclaim the space of deleted entries in `range`. This is a hint:
    /// correctness never depends on it, and it may return before the work is done.
    fn reclaim<'a>(&'a self, range: KeyRange) -> BoxFuture<'a, Result<()>>;

    fn statistics(&self) -> Statistics;

    /// Asks a store across a network about itself, for operators. `None` from a store in this process.
    fn inspect(&self) -> BoxFuture<'_, Result<Option<Inspection>>> {
        ready(Ok(None)).boxed()
    }

    /// Whether others may write to it at the same time, from this process or another. If nobody
    /// does, its one writer may trust its memory of its own writes.
    fn is_shared(&self) -> bool {
        false
    }

    /// A copy that is behind by no more than the store was told to allow, if there is one now. Its
    /// reads return [`Error::Unavailable`] once the store can't guarantee that any more. Callers that
    /// need more read the store itself.
    fn replica(&self) -> Option<Arc<dyn Replica>> {
        None
    }

    /// Finishes accepted writes and closes the store. Later reads and writes return
    /// [`Error::Closed`]. Earlier snapshots stay readable, and keep the backend's files open until
    /// dropped.
    fn close(&self) -> BoxFuture<'_, Result<()>>;
}

/// Puts one key or deletes it.
pub async fn put_or_delete<S: Store + ?Sized>(
    store: &S,
    key: Key,
    value: Option<Value>,
) -> Result<()> {
    let keys = std::slice::from_ref(&key);
    let mut decide = |_: &[Option<Value>]| {
        let mut batch = Batch::new();
        match &value {
            Some(value) => batch.put(key.clone(), value.clone()),
            None => batch.delete(key.clone()),
        }
        Decision::Commit(batch)
    };
    store.write(WriteSet { guards: &[], keys }, &mut decide).await.map(drop)
}

/// What a write reads and locks. `guards` are read under a shared lock, `keys` under an exclusive one.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteSet<'a> {
    pub guards: &'a [Key],
    pub keys: &'a [Key],
}

#[derive(Debug)]
pub enum Decision {
    Commit(Batch),
    /// Writes nothing. The write still waits until everything that its decision was based on is
    /// durable, so a response such as "condition failed" never rests on a lost write.
    Abort,
}

/// What a write has committed; nothing if its decision was to abort.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommitOutcome {
    /// The sequence numbers of the batch's appends, in batch order.
    pub sequences: Vec<u64>,
    /// The stamp of the batch's stamped puts. A store that cannot be copied while it changes
    /// ([`copying::Tail`]) need not tell.
    pub stamp: Option<Stamp>,
}

/// The mutations of one atomic write, applied in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    pub mutations: Vec<Mutation>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mutation {
    Put {
        key: Key,
        value: Value,
    },
    Delete {
        key: Key,
    },
    DeleteRange {
        range: KeyRange,
    },
    /// Adds an entry under `log`, at [`log_entry_key`]. Sequence numbers of one log start at 1 and
    /// rise by one in commit order. Deleting a log's entries does not restart its numbering. A
    /// decision that reads an entry may miss one still in flight.
    ///
    /// The value is stored after a stamp ([`decode_log_entry`]): the stamp given here, or that of
    /// the previous entry if it is later. So the stamps of a log never descend, whichever clocks
    /// its writers read, and in whatever order.
    Append {
        log: Key,
        stamp: u64,
        value: Value,
    },
    /// Forgets the numbering of a log that gets no more appends. A later append starts again at 1.
    ForgetLog {
        log: Key,
    },
    /// Sets the end of a log that was copied from another store, so that its numbers and stamps go
    /// on from there.
    SetLogEnd {
        log: Key,
        end: LogEnd,
    },
    /// Adds `delta` to the counter at `key` (eight bytes, big-endian, two's complement; absent is
    /// zero). Additions commute, so this takes no lock, and a decision that reads a counter may
    /// miss additions still in flight. A counter that reaches zero is deleted. If the key holds
    /// anything but a counter, this write fails as a whole with [`Error::Corrupt`], and no other
    /// write does.
    Add {
        key: Key,
        delta: i64,
    },
    /// Puts a value at a key that ends with the stamp of the batch. All stamped puts of a batch have
    /// the same stamp: greater than what its clocks show, and not earlier than its writer's time. The
    /// batch sets its clocks to it. A decision that reads such a key may miss one still in flight.
    ///
    /// In a batch with stamped puts, range deletions and forgotten logs come before them, and no
    /// clock is advanced.
    PutStamped(Box<StampedPut>),
    /// Makes a clock show at least this stamp, so that everything stamped afterwards has a greater
    /// one. A clock lives where a log's numbering does, and [`Mutation::ForgetLog`] forgets it.
    Advance {
        clock: Key,
        to: Stamp,
    },
}

/// What a mutation is known to leave behind before it is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownEffect<'a> {
    /// This value, or none, at a key.
    Key(&'a Key, Option<&'a Value>),
    /// Nothing in a range.
    Deleted(&'a KeyRange),
}

impl Mutation {
    /// `None` for what is numbered, summed or stamped only as it is committed.
    pub fn known_effect(&self) -> Option<KnownEffect<'_>> {
        match self {
            Mutation::Put { key, value } => Some(KnownEffect::Key(key, Some(value))),
            Mutation::Delete { key } => Some(KnownEffect::Key(key, None)),
            Mutation::DeleteRange { range } => Some(KnownEffect::Deleted(range)),
            Mutation::Append { .. }
            | Mutation::ForgetLog { .. }
            | Mutation::Add { .. }
            | Mutation::SetLogEnd { .. }
            | Mutation::PutStamped(_)
            | Mutation::Advance { .. } => None,
        }
    }
}

impl Batch {
    pub fn new() -> Batch {
        Batch::default()
    }

    /// An empty batch with capacity for this many mutations.
    pub fn with_capacity(mutations: usize) -> Batch {
        Batch { mutations: Vec::with_capacity(mutations) }
    }

    pub fn put(&mut self, key: impl Into<Key>, value: impl Into<Value>) {
        self.mutations.push(Mutation::Put { key: key.into(), value: value.into() });
    }

    pub fn delete(&mut self, key: impl Into<Key>) {
        self.mutations.push(Mutation::Delete { key: key.into() });
    }

    pub fn delete_range(&mut self, range: KeyRange) {
        self.mutations.push(Mutation::DeleteRange { range });
    }

    pub fn append(&mut self, log: impl Into<Key>, stamp: u64, value: impl Into<Value>) {
        self.mutations.push(Mutation::Append { log: log.into(), stamp, value: value.into() });
    }

    /// Deletes a log: its remaining entries and its numbering.
    pub fn drop_log(&mut self, log: impl Into<Key>) {
        let log = log.into();
        self.delete_range(log_range(&log));
        self.mutations.push(Mutation::ForgetLog { log });
    }

    pub fn set_log_end(&mut self, log: impl Into<Key>, end: LogEnd) {
        self.mutations.push(Mutation::SetLogEnd { log: log.into(), end });
    }

    pub fn add(&mut self, key: impl Into<Key>, delta: i64) {
        self.mutations.push(Mutation::Add { key: key.into(), delta });
    }

    pub fn is_empty(&self) -> bool {
        self.mutations.is_empty()
    }
}

/// The key of a log entry: the log's own key, then the sequence number in eight bytes, big-endian.
pub fn log_entry_key(log: &[u8], sequence: u64) -> Key {
    let mut key = Vec::with_capacity(log.len() + 8);
    key.extend_from_slice(log);
    key.extend_from_slice(&sequence.to_be_bytes());
    key.into()
}

/// The range of all entries of a log.
pub fn log_range(log: &[u8]) -> KeyRange {
    let mut end = log_entry_key(log, u64::MAX).to_vec();
    end.push(0);
    KeyRange::new(log_entry_key(log, 0), end)
}

/// Encodes a log entry: its stamp (8 bytes, big-endian), then its value.
pub fn encode_log_entry(stamp: u64, value: &[u8], entry: &mut Vec<u8>) {
    entry.extend_from_slice(&stamp.to_be_bytes());
    entry.extend_from_slice(value);
}

/// The stamp and the value of a log entry.
pub fn decode_log_entry(entry: &Value) -> Result<(u64, Value)> {
    match entry.first_chunk() {
        Some(stamp) => Ok((u64::from_be_bytes(*stamp), entry.slice(stamp.len()..))),
        None => {
            let detail = format!("an entry of a log, of {} bytes", entry.len());
            Err(Error::Corrupt { detail })
        }
    }
}

/// The end of a log: the number and the stamp of its last entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogEnd {
    pub sequence: u64,
    pub stamp: u64,
}

impl LogEnd {
    /// The end of the log after one more entry. Every backend numbers and stamps appends with this.
    #[must_use]
    pub fn append(self, stamp: u64) -> LogEnd {
        LogEnd { sequence: self.sequence + 1, stamp: stamp.max(self.stamp) }
    }
}

/// Reads a counter that [`Mutation::Add`] wrote.
pub fn decode_counter(value: Option<&[u8]>) -> Result<i64> {
    match value {
        None => Ok(0),
        Some(bytes) => bytes.try_into().map(i64::from_be_bytes).map_err(|_| Error::Corrupt {
            detail: format!("a counter of {} bytes, expected 8", bytes.len()),
        }),
    }
}

/// Milliseconds since the Unix epoch, by the machine's clock.
pub fn system_time_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// The counter under `key`.
pub async fn read_counter(reader: &dyn Reader, key: &[u8]) -> Result<i64> {
    decode_counter(reader.get(key).await?.as_deref())
}

/// The keys from `start` (inclusive) to `end` (exclusive; `None` is the end of the key space).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    pub start: Key,
    pub end: Option<Key>,
}

impl KeyRange {
    pub fn all() -> KeyRange {
        KeyRange { start: Key::new(), end: None }
    }

    pub fn new(start: impl Into<Key>, end: impl Into<Key>) -> KeyRange {
        KeyRange { start: start.into(), end: Some(end.into()) }
    }

    /// Every key that begins with `prefix`.
    pub fn prefix(prefix: impl Into<Key>) -> KeyRange {
        let start = prefix.into();
        let end = prefix_end(&start);
        KeyRange { start, end }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        key >= &self.start[..] && self.end.as_ref().is_none_or(|end| key < &end[..])
    }

    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }
}

/// The first key after every key that begins with `prefix`, or `None` if there is none.
pub fn prefix_end(prefix: &[u8]) -> Option<Key> {
    let last = prefix.iter().rposition(|&byte| byte != 0xFF)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Reverse,
}

#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// The bytes that the store takes on disk (or in memory for a backend without files).
    pub size_bytes: u64,
    /// The number of commit groups written since the store was opened.
    pub commit_groups: u64,
    /// The number of writes in these groups.
    pub committed_writes: u64,
    /// Why the store refuses writes, if it does.
    pub write_failure: Option<String>,
}

/// What a store across a network says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The software that answered, with its version.
    pub server: String,
    /// Where it runs.
    pub host: String,
    /// How long it took to answer.
    pub round_trip: Duration,
    pub standbys: Vec<StandbyStatus>,
    /// The hosts that this process may read from as replicas, with how far behind they are at most,
    /// if that is known.
    pub replicas: Vec<(String, Option<Duration>)>,
}

/// A copy that follows the store, as the store sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandbyStatus {
    pub name: String,
    pub state: String,
    /// Whether a commit may wait for it.
    pub is_synchronous: bool,
    /// How far behind it is, if the store says so.
    pub lag_bytes: Option<u64>,
    pub lag: Option<Duration>,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("I/O failed: {detail}")]
    Io { detail: String },
    #[error("stored data is corrupt: {detail}")]
    Corrupt { detail: String },
    #[error("the store refuses writes because of an earlier failure: {detail}")]
    WritesRefused { detail: String },
    #[error("the store is closed")]
    Closed,
    #[error("this store cannot do that: {detail}")]
    Unsupported { detail: String },
    #[error("the data directory cannot be opened: {detail}")]
    Open { detail: String },
    /// Every attempt of this write conflicted with others on its keys. It wrote nothing and may be
    /// retried.
    #[error("every attempt of the write conflicted with other writes of its keys")]
    Conflict,
    /// The store could not be reached in time. Nothing was decided or written, and the request may
    /// be retried.
    #[error("the store is unavailable: {detail}")]
    Unavailable { detail: String },
    /// The write was begun, but the disk failed or the store could not be reached since, so it is
    /// unknown whether it was committed.
    #[error("the outcome of the write is unknown: {detail}")]
    Uncertain { detail: String },
}

/// Runs a write whose decision yields a typed outcome.
///
/// `decide` returns `Ok((batch, outcome))` to commit or `Err(error)` to abort. The outer `Result`
/// is the store's, the inner one the decision's.
pub async fn write_with<T: Send, E: Send>(
    store: &dyn Store,
    set: WriteSet<'_>,
    mut decide: impl FnMut(&[Option<Value>]) -> std::result::Result<(Batch, T), E> + Send,
) -> Result<std::result::Result<(T, CommitOutcome), E>> {
    let mut answer = None;
    let outcome = store
        .write(set, &mut |reads| match decide(reads) {
            Ok((batch, value)) => {
                answer = Some(Ok(value));
                Decision::Commit(batch)
            }
            Err(error) => {
                answer = Some(Err(error));
                Decision::Abort
            }
        })
        .await?;
    let answer = answer.expect("a store that resolves a write has decided it");
    Ok(answer.map(|value| (value, outcome)))
}

/// Lets other tasks of the same executor run, whichever executor that is. A store that never waits
/// would block them for a whole scan.
pub async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
