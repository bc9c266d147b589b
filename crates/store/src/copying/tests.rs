use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::*;
use crate::conformance::{Random, block_on, commit, entries};
use crate::failing::{FailingStore, WriteFailure};
use crate::layer::Layer;
use crate::memory::MemoryStore;
use crate::{Batch, CommitOutcome, Decide, Decision, LogEnd, Mutation, Value, Visitor, WriteSet};

const CHUNK: usize = 2_000;

fn filled(rows: usize) -> Arc<MemoryStore> {
    let store = MemoryStore::new();
    for row in 0..rows {
        commit(&store, |batch| {
            batch.put(format!("row/{row:05}"), vec![row as u8; 100]);
            batch.append("log/", row as u64, "entry");
            batch.add("count", 1);
        });
    }
    Arc::new(store)
}

async fn copy_all(
    source: &dyn Store,
    target: &dyn Store,
    tracker: Option<&dyn ChangeTracker>,
    id: u64,
) -> CopyResult<CopyCounts> {
    let options = CopyOptions { chunk_bytes: CHUNK, ..CopyOptions::default() };
    let mut copy =
        StoreCopy::begin(source, target, tracker, (id, "source"), options, &|_| {}).await?;
    copy.entries().await?;
    copy.logs().await?;
    copy.catch_up(0).await?;
    copy.finish().await?;
    Ok(copy.progress())
}

type Contents = (Vec<(Vec<u8>, Vec<u8>)>, Vec<(Key, LogEnd)>);

fn contents(store: &dyn Store) -> Contents {
    let mut found = entries(store, KeyRange::all(), Direction::Forward);
    found.retain(|(key, _)| !key.starts_with(RESERVED));
    (found, block_on(store.log_ends(&[], 1_000)).unwrap())
}

/// The target, which fails after this many writes as if the process had died.
fn dying(target: &Arc<dyn Store>, writes: usize) -> FailingStore {
    let store = FailingStore::new(Arc::clone(target));
    store.set(WriteFailure::RefusedAfter { writes, error: Error::Closed });
    store
}

/// What goes wrong in the target's writes.
enum Fault {
    /// This write loses an entry, or changes one.
    Loses(usize),
    Changes(usize),
    LosesLogs,
}

struct FaultyTarget {
    below: Arc<dyn Store>,
    fault: Fault,
    writes: AtomicUsize,
}

impl FaultyTarget {
    fn new(below: &Arc<dyn Store>, fault: Fault) -> FaultyTarget {
        FaultyTarget { below: Arc::clone(below), fault, writes: AtomicUsize::new(0) }
    }

    fn damage(&self, write: usize, batch: &mut Batch) {
        let is_put = |mutation: &Mutation| matches!(mutation, Mutation::Put { .. });
        let put = batch.mutations.iter().position(is_put);
        match self.fault {
            Fault::Loses(at) if at == write => {
                batch.mutations.remove(put.unwrap());
            }
            Fault::Changes(at) if at == write => {
                if let Mutation::Put { value, .. } = &mut batch.mutations[put.unwrap()] {
                    *value = [&value[1..], b"!"].concat().into();
                }
            }
            Fault::LosesLogs => {
                batch.mutations.retain(|mutation| !matches!(mutation, Mutation::SetLogEnd { .. }));
            }
            _ => {}
        }
    }
}

impl Layer for FaultyTarget {
    fn below(&self) -> &Arc<dyn Store> {
        &self.below
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, crate::Result<CommitOutcome>> {
        let write = self.writes.fetch_add(1, Ordering::SeqCst);
        async move {
            let mut damaging = |reads: &[Option<Value>]| match decide(reads) {
                Decision::Commit(mut batch) => {
                    self.damage(write, &mut batch);
                    Decision::Commit(batch)
                }
                Decision::Abort => Decision::Abort,
            };
            self.below.write(set, &mut damaging).await
        }
        .boxed()
    }
}

#[test]
fn a_copy_continues_wherever_it_was_cut_off() {
    let source = filled(300);
    let whole = block_on(copy_all(&*source, &MemoryStore::new(), None, 1)).unwrap();
    let mut at = 0;
    loop {
        let target: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let first = block_on(copy_all(&*source, &dying(&target, at), None, 1));
        let is_done = first.is_ok();
        if !is_done && at > 0 {
            let obstacle = block_on(check_servable(&*target)).unwrap();
            assert!(matches!(obstacle, Some(Obstacle::Incomplete(_))), "{obstacle:?}");
            let second = block_on(copy_all(&*source, &*target, None, 1)).unwrap();
            assert_eq!(second.done, whole.done);
            // Only what was not verified yet is copied again.
            let left_out = whole.ranges - second.ranges;
            let verified = (at as u64).saturating_sub(2).min(whole.ranges - 1);
            assert_eq!(left_out, verified, "cut off at {at}");
        }
        if is_done || at > 0 {
            assert_eq!(contents(&*target), contents(&*source));
            assert_eq!(block_on(check_servable(&*target)).unwrap(), None);
        }
        if is_done {
            break;
        }
        at += 1;
    }
    assert!(at > 10, "{at} writes");
}

/// The source was used in between, so nothing of the first copy is believed.
#[test]
fn a_copy_of_what_has_changed_since_is_compared_from_the_start() {
    let source = filled(300);
    let target: Arc<dyn Store> = Arc::new(MemoryStore::new());
    block_on(copy_all(&*source, &dying(&target, 12), None, 1)).unwrap_err();
    commit(&*source, |batch| {
        batch.delete("row/00003");
        batch.put("row/00004x", "new");
        batch.drop_log("log/");
        batch.append("other/", 1, "x");
    });
    block_on(copy_all(&*source, &*target, None, 2)).unwrap();
    assert_eq!(contents(&*target), contents(&*source));
}

#[test]
fn what_comes_back_different_ends_the_copy() {
    let source = filled(300);
    for fault in [Fault::Loses(3), Fault::Changes(3), Fault::Loses(2), Fault::LosesLogs] {
        let target: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let faulty = FaultyTarget::new(&target, fault);
        let copied = block_on(copy_all(&*source, &faulty, None, 1));
        assert!(matches!(copied, Err(CopyError::Differs { .. })), "{copied:?}");
        let obstacle = block_on(check_servable(&*target)).unwrap();
        assert!(matches!(obstacle, Some(Obstacle::Incomplete(_))), "{obstacle:?}");
        // The damaged range is not among those that are believed.
        block_on(copy_all(&*source, &*target, None, 1)).unwrap();
        assert_eq!(contents(&*target), contents(&*source));
    }
}

#[test]
fn only_an_empty_target_is_filled() {
    let source = filled(3);
    let used = filled(1);
    let copied = block_on(copy_all(&*source, &*used, None, 1));
    assert!(matches!(copied, Err(CopyError::NotEmpty)), "{copied:?}");
    let numbered = MemoryStore::new();
    commit(&numbered, |batch| batch.set_log_end("log/", LogEnd { sequence: 1, stamp: 1 }));
    let copied = block_on(copy_all(&*source, &numbered, None, 1));
    assert!(matches!(copied, Err(CopyError::NotEmpty)), "{copied:?}");

    let target: Arc<dyn Store> = Arc::new(MemoryStore::new());
    block_on(copy_all(&*source, &dying(&target, 1), None, 1)).unwrap_err();
    let options = CopyOptions::default();
    let other =
        block_on(StoreCopy::begin(&*source, &*target, None, (1, "other"), options, &|_| {}));
    assert!(matches!(other.err(), Some(CopyError::OtherCopy { .. })));
    block_on(copy_all(&*source, &*target, None, 1)).unwrap();
    let copied = block_on(copy_all(&*source, &*target, None, 1));
    assert!(matches!(copied, Err(CopyError::NotEmpty)), "{copied:?}");
}

/// A source that changes at random with every read of it.
struct ChangingSource {
    below: Arc<dyn Store>,
    random: Mutex<Random>,
    changed: Mutex<ChangedKeys>,
    changes_left: AtomicUsize,
    rows_read: AtomicUsize,
}

impl ChangingSource {
    fn new(below: Arc<dyn Store>, seed: u64, changes: usize) -> ChangingSource {
        ChangingSource {
            below,
            random: Mutex::new(Random::new(seed)),
            changed: Mutex::default(),
            changes_left: AtomicUsize::new(changes),
            rows_read: AtomicUsize::new(0),
        }
    }

    fn commit(&self, batch: &Batch) {
        let outcome = commit(&*self.below, |into| *into = batch.clone());
        self.changed.lock().unwrap().add(&batch.mutations, &outcome);
    }

    fn change(&self) {
        let is_over = |left: usize| left.checked_sub(1);
        let left = self.changes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_over);
        if left.is_err() {
            return;
        }
        let mut random = self.random.lock().unwrap();
        for _ in 0..random.below(8) {
            let row = format!("row/{:05}", random.below(400));
            let batch = random_change(&mut random, row);
            self.commit(&batch);
        }
    }
}

fn random_change(random: &mut Random, row: String) -> Batch {
    let mut batch = Batch::new();
    match random.below(10) {
        0..=2 => batch.put(row, random.bytes(50)),
        3 => batch.delete(row),
        4 => batch.append("log/", 1, "more"),
        5 => batch.add("count", 1),
        6 => {
            let range = KeyRange::new(row.clone(), format!("{row}~"));
            batch.delete_range(range);
            batch.put(format!("{row}-after"), "x");
        }
        7 => {
            batch.drop_log("log/");
            batch.append(format!("log{}/", random.below(3)), 1, "other");
        }
        _ => {
            batch.put_stamped("clock/", random.next_u64() % 9, format!("{row}/"), random.bytes(20));
            batch.put_stamped("clock/", random.next_u64() % 9, "versions/", random.bytes(20));
        }
    }
    batch
}

impl Layer for ChangingSource {
    fn below(&self) -> &Arc<dyn Store> {
        &self.below
    }

    fn scan_then_get<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        entries_max: Option<usize>,
        visit: &'a mut Visitor<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, crate::Result<Vec<Option<Value>>>> {
        async move {
            self.change();
            let mut counted = |key: &[u8], value: &[u8]| {
                self.rows_read.fetch_add(1, Ordering::SeqCst);
                visit(key, value)
            };
            let read =
                self.below.scan_then_get(range, direction, entries_max, &mut counted, keys).await;
            self.change();
            read
        }
        .boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, crate::Result<Vec<Option<Value>>>> {
        async move {
            let read = self.below.get_many(keys).await;
            self.rows_read.fetch_add(keys.len(), Ordering::SeqCst);
            self.change();
            read
        }
        .boxed()
    }
}

impl ChangeTracker for ChangingSource {
    fn take(&self) -> CopyResult<ChangedKeys> {
        Ok(std::mem::take(&mut *self.changed.lock().unwrap()))
    }
}

#[test]
fn a_source_that_changes_meanwhile_is_caught_up_with() {
    let mut random = Random::announced("a_source_that_changes_meanwhile_is_caught_up_with");
    for _ in 0..30 {
        let source = ChangingSource::new(filled(300), random.next_u64(), 100);
        let target = MemoryStore::new();
        block_on(copy_all(&source, &target, Some(&source), 1)).unwrap();
        assert_eq!(contents(&target), contents(&*source.below));
    }
}

/// Two stores with the same content have the same sums, whatever the ranges, and a difference shows where it is.
#[test]
fn sums_tell_stores_apart() {
    let sums = |store: &MemoryStore| {
        let mut sums: Vec<RangeSum> = Vec::new();
        let mut start = Some(Key::new());
        while let Some(from) = start {
            let sum = block_on(sum_from(store, from, 1_000)).unwrap();
            start = sum.range.end.clone();
            sums.push(sum);
        }
        (sums, block_on(sum_log_ends(store)).unwrap())
    };
    let (one, other) = (filled(100), filled(100));
    let (ranges, ends) = sums(&one);
    assert_eq!((&ranges, ends), (&sums(&other).0, sums(&other).1));
    assert!(ranges.len() > 10, "{}", ranges.len());
    let rows: u64 = ranges.iter().map(|sum| sum.rows).sum();
    assert_eq!(rows, block_on(sum_range(&*one, KeyRange::all())).unwrap().rows);
    assert_eq!(rows, 201);

    commit(&*other, |batch| batch.put("row/00050", "other"));
    let differs =
        |sum: &&RangeSum| block_on(sum_range(&*other, sum.range.clone())).unwrap() != **sum;
    let different: Vec<&RangeSum> = ranges.iter().filter(differs).collect();
    assert_eq!(different.len(), 1);
    assert!(different[0].range.contains(b"row/00050"));
    commit(&*other, |batch| batch.append("log/", 1_000, "entry"));
    assert_ne!(block_on(sum_log_ends(&*other)).unwrap(), ends);
}

/// A key with a long history is changed once more. Only that change is copied, however much lies before it.
#[test]
fn catching_up_reads_what_has_changed_and_nothing_else() {
    let version = |number: u8| {
        let mut batch = Batch::new();
        batch.put_stamped("clock/", 1, "versions/", [number; 50].to_vec());
        batch
    };
    let below = filled(0);
    (0..200).for_each(|number| drop(commit(&*below, |into| *into = version(number))));
    let source = ChangingSource::new(below, 1, 0);
    let target = MemoryStore::new();
    block_on(async {
        let options = CopyOptions { chunk_bytes: CHUNK, ..CopyOptions::default() };
        let begun =
            StoreCopy::begin(&source, &target, Some(&source), (1, "source"), options, &|_| {});
        let mut copy = begun.await.unwrap();
        copy.entries().await.unwrap();
        let before = source.rows_read.load(Ordering::SeqCst);
        (200..203).for_each(|number| source.commit(&version(number)));
        copy.catch_up_at_last().await.unwrap();
        assert_eq!(source.rows_read.load(Ordering::SeqCst) - before, 3);
        assert_eq!(copy.progress().changes, 3);
    });
    assert_eq!(contents(&target), contents(&*source.below));
}

#[test]
fn a_source_that_changes_too_fast_to_be_followed_is_given_up() {
    let source = ChangingSource::new(filled(300), 1, usize::MAX);
    let target = MemoryStore::new();
    let copied = block_on(async {
        let options = CopyOptions { chunk_bytes: CHUNK, changes_max: 2 };
        let begun =
            StoreCopy::begin(&source, &target, Some(&source), (1, "source"), options, &|_| {});
        begun.await.unwrap().entries().await
    });
    assert!(matches!(copied, Err(CopyError::TooFast { left: 3.. })), "{copied:?}");
}
