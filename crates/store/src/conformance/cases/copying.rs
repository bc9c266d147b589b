use crate::conformance::Backend;
use crate::conformance::cases::random::random_batch;
use crate::conformance::support::{Random, block_on, commit, entries, get, key};
use crate::copying::{CopyOptions, Obstacle, Seal, SealState, StoreCopy, check_servable};
use crate::memory::MemoryStore;
use crate::{Batch, Decision, Direction, Key, KeyRange, LogEnd, Store, Value, WriteSet};

/// A sealed store says so until the seal is removed. One that others use refuses their writes.
pub fn a_seal_comes_and_goes(backend: &dyn Backend) {
    let store = backend.open();
    let beside = backend.open_beside();
    commit(&*store, |batch| batch.put("row", "1"));
    assert_eq!(block_on(check_servable(&*store)).unwrap(), None);
    for state in [SealState::Moving, SealState::Moved] {
        let seal = Seal { id: 7, to: "elsewhere".into(), state };
        block_on(seal.put(&*store)).expect("it is sealed");
        assert_eq!(block_on(check_servable(&*store)).unwrap(), Some(Obstacle::Sealed(seal)));
        if let Some(beside) = &beside {
            assert!(try_put(&**beside, "row", "2").is_err());
            assert!(try_put(&*store, "row", "2").is_err());
        }
        assert_eq!(get(&*store, b"row").as_deref(), Some(&b"1"[..]));
    }
    block_on(Seal::remove(&*store)).expect("the seal is removed");
    assert_eq!(block_on(check_servable(&*store)).unwrap(), None);
    let writer = beside.as_ref().unwrap_or(&store);
    try_put(&**writer, "row", "3").expect("writes are accepted again");
    assert_eq!(get(&*store, b"row").as_deref(), Some(&b"3"[..]));
}

fn try_put(store: &dyn Store, name: &str, value: &'static str) -> crate::Result<()> {
    let keys = [key(name)];
    let mut decide = |_: &[Option<Value>]| {
        let mut batch = Batch::new();
        batch.put(keys[0].clone(), value);
        Decision::Commit(batch)
    };
    block_on(store.write(WriteSet { guards: &[], keys: &keys }, &mut decide)).map(drop)
}

/// A copy into this backend, and a copy of that copy, hold what the original holds: entries of every
/// kind, counters to which others can be added, and logs that can be appended to.
pub fn copies_are_equal(backend: &dyn Backend) {
    let mut random = Random::announced("copies_are_equal");
    let original = MemoryStore::new();
    for _ in 0..300 {
        let batch = random_batch(&mut random);
        commit(&original, |into| *into = batch.clone());
    }
    commit(&original, |batch| {
        batch.put(vec![b'm'; 6_000], vec![1; 300_000]);
        batch.put([&[b'm'; 6_000][..], b"x"].concat(), "long");
        batch.add("count/9", i64::MIN);
        batch.append("log/last/", 9, "x");
    });
    let store = backend.open();
    copy(&original, &*store);
    assert_eq!(contents(&*store), contents(&original));
    let go_on = |batch: &mut Batch| {
        batch.add("count/9", 5);
        batch.append("log/last/", 1, "y");
    };
    assert_eq!(commit(&*store, go_on), commit(&original, go_on));
    let again = MemoryStore::new();
    copy(&*store, &again);
    assert_eq!(contents(&again), contents(&original));
}

fn copy(source: &dyn Store, target: &dyn Store) {
    let copied = async {
        let options = CopyOptions { chunk_bytes: 1_000, ..CopyOptions::default() };
        let mut copy =
            StoreCopy::begin(source, target, None, (1, "the original"), options, &|_| {}).await?;
        copy.entries().await?;
        copy.logs().await?;
        copy.finish().await?;
        crate::copying::CopyResult::Ok(copy.progress())
    };
    let progress = block_on(copied).expect("it is copied");
    assert!(progress.ranges > 2, "{progress:?}");
}

type Contents = (Vec<(Vec<u8>, Vec<u8>)>, Vec<(Key, LogEnd)>);

fn contents(store: &dyn Store) -> Contents {
    let mut found = entries(store, KeyRange::all(), Direction::Forward);
    found.retain(|(key, _)| !key.starts_with(crate::copying::RESERVED));
    (found, block_on(store.log_ends(&[], 10_000)).expect("they can be read"))
}
