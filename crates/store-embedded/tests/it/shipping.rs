//! Groups that are shipped, and a copy that they are applied to.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use zenobe_store::conformance::{block_on, commit};
use zenobe_store::copying::{sum_from, sum_log_ends};
use zenobe_store::shipping::{FollowError, LogGroup};
use zenobe_store::{Error, Key, Reader, Stamp, Store};
use zenobe_store_embedded::{
    Durability, EmbeddedStore, Options, RESTORING_FILE, RestoringDirectory, remove_restoring_mark,
};

const WAITING_BYTES_MAX: usize = 64 << 20;

fn open(path: &Path, durability: Durability) -> EmbeddedStore {
    EmbeddedStore::open(path, Options { durability, ..Options::default() }).unwrap()
}

/// Something of every kind.
fn change(store: &EmbeddedStore, number: u64) {
    commit(store, |batch| {
        batch.put(format!("row/{}", number % 50), number.to_string());
        batch.delete(format!("row/{}", number % 7));
        batch.add("count", 1);
        batch.append("log/", number, "entry");
        batch.put_stamped("clock", number, "stamped/", "x");
        if number % 10 == 9 {
            batch.delete_range(zenobe_store::KeyRange::new("row/3", "row/4"));
        }
    });
}

fn content(store: &EmbeddedStore) -> (u64, u128, (u64, u128)) {
    let sum = block_on(sum_from(store, Key::new(), u64::MAX)).unwrap();
    (sum.rows, sum.checksum, block_on(sum_log_ends(store)).unwrap())
}

/// A copy and the groups after it make the same store, whatever was in flight when the copy was made.
#[test]
fn a_copy_and_the_groups_after_it_are_the_store() {
    for durability in [Durability::Sync, Durability::Os] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory.path().join("store"), durability);
        (0..100).for_each(|number| change(&store, number));
        let follower = store.follow_log(WAITING_BYTES_MAX, Stamp::default()).unwrap();
        let copy = directory.path().join("copy");
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            for writer in 1..4 {
                let (store, is_done) = (&store, &is_done);
                scope.spawn(move || {
                    for number in writer * 1_000.. {
                        change(store, number);
                        if is_done.load(Ordering::SeqCst) {
                            break;
                        }
                    }
                });
            }
            block_on(store.checkpoint(&copy)).unwrap();
            is_done.store(true, Ordering::SeqCst);
        });
        let until = follower.complete_until();
        assert_eq!(until, None, "nothing has been taken");
        let mut groups = Vec::new();
        loop {
            let taken = follower.take(1_000).unwrap();
            if taken.is_empty() {
                break;
            }
            groups.extend(taken);
        }
        check_order(&groups);
        assert!(follower.complete_until().unwrap() >= groups.last().unwrap().stamp);
        let expected = content(&store);
        assert_eq!(apply(&copy, &groups), expected, "{durability:?}");
    }
}

fn check_order(groups: &[LogGroup]) {
    for pair in groups.windows(2) {
        assert_eq!(pair[0].next(), pair[1].first);
        assert!(pair[0].stamp < pair[1].stamp);
    }
}

/// Opens a copy, applies groups, and returns what it then holds.
fn apply(copy: &Path, groups: &[LogGroup]) -> (u64, u128, (u64, u128)) {
    let mut replay = RestoringDirectory::open(copy, &Options::default()).unwrap();
    for group in groups {
        replay.apply(group).unwrap();
    }
    replay.finish().unwrap();
    content(&open(copy, Durability::Sync))
}

#[test]
fn a_group_that_does_not_follow_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("store"), Durability::Os);
    let copy = directory.path().join("copy");
    block_on(store.checkpoint(&copy)).unwrap();
    let follower = store.follow_log(WAITING_BYTES_MAX, Stamp::default()).unwrap();
    (0..3).for_each(|number| change(&store, number));
    let groups = follower.take(usize::MAX).unwrap();
    let mut replay = RestoringDirectory::open(&copy, &Options::default()).unwrap();
    let refused = |error: zenobe_store::Result<bool>| matches!(error, Err(Error::Corrupt { .. }));
    assert!(refused(replay.apply(&groups[1])), "one is missing before it");
    assert!(replay.apply(&groups[0]).unwrap());
    assert!(!replay.apply(&groups[0]).unwrap(), "it is there already");
    let wrong = LogGroup { entries: groups[1].entries + 1, ..groups[1].clone() };
    assert!(refused(replay.apply(&wrong)));
    let cut_off = LogGroup { bytes: groups[1].bytes.slice(..5), ..groups[1].clone() };
    assert!(refused(replay.apply(&cut_off)));
    assert!(replay.apply(&groups[1]).unwrap());
}

#[test]
fn stamps_are_not_before_what_they_follow() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), Durability::Os);
    let later = Stamp::first_of_ms(9_000_000_000_000);
    let follower = store.follow_log(WAITING_BYTES_MAX, later).unwrap();
    change(&store, 1);
    assert!(follower.take(usize::MAX).unwrap()[0].stamp > later);
    // Stamps in keys count too: a group is not before its own rows.
    let stamp = Stamp::first_of_ms(9_500_000_000_000);
    commit(&store, |batch| batch.put_stamped("clock", stamp.at_ms(), "stamped/", "x"));
    assert!(follower.take(usize::MAX).unwrap()[0].stamp >= stamp);
    assert!(follower.newest_stamp() >= stamp);
}

/// Writes never wait for whoever takes groups. Beyond the bound groups are lost, and that is told.
#[test]
fn too_many_groups_are_lost_together() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), Durability::Os);
    let follower = store.follow_log(10_000, Stamp::default()).unwrap();
    (0..10).for_each(|number| change(&store, number));
    assert_eq!(follower.take(usize::MAX).unwrap().len(), 10);
    commit(&store, |batch| batch.put("large", vec![0; 20_000]));
    let lost = follower.take(usize::MAX);
    assert_eq!(lost, Err(FollowError::Overrun { limit_bytes: 10_000 }));
    assert_eq!(follower.complete_until(), None);
    change(&store, 11);
    assert!(follower.take(usize::MAX).is_err());
    // The next one begins anew, and the end of the first does not concern it.
    let next = store.follow_log(10_000, Stamp::default()).unwrap();
    drop(follower);
    change(&store, 12);
    let groups = next.take(usize::MAX).unwrap();
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0].next(), store.last_sequence().unwrap() + 1);
}

#[test]
fn a_closed_store_hands_out_its_last_groups() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), Durability::Sync);
    let follower = store.follow_log(WAITING_BYTES_MAX, Stamp::default()).unwrap();
    change(&store, 1);
    block_on(store.close()).unwrap();
    assert_eq!(follower.take(usize::MAX).unwrap().len(), 1);
    assert_eq!(follower.take(usize::MAX), Err(FollowError::Ended));
    assert!(store.follow_log(WAITING_BYTES_MAX, Stamp::default()).is_err());
}

#[test]
fn an_unfinished_restore_is_not_served() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    drop(open(path, Durability::Os));
    std::fs::write(path.join(RESTORING_FILE), "").unwrap();
    match EmbeddedStore::open(path, Options::default()).map(drop) {
        Err(Error::Open { detail }) => assert!(detail.contains("unfinished restore"), "{detail}"),
        other => panic!("{other:?}"),
    }
    RestoringDirectory::open(path, &Options::default()).unwrap().finish().unwrap();
    remove_restoring_mark(path).unwrap();
    let store = open(path, Durability::Os);
    assert_eq!(block_on(store.get(b"x")).unwrap(), None);
}

/// A process that died while it made a copy leaves links to files, which would never be freed.
#[test]
fn copies_that_were_left_behind_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), Durability::Os);
    let copy = store.checkpoint_path("left").unwrap();
    block_on(store.checkpoint(&copy)).unwrap();
    assert!(copy.join("FORMAT").exists());
    drop(store);
    drop(open(directory.path(), Durability::Os));
    assert!(!copy.exists());
}
