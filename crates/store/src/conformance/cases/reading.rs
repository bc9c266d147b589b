use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::conformance::Backend;
use crate::conformance::support::{
    AtEnd, block_on, commit, commit_locking, entries, entries_up_to, get, get_text, key, names,
    number, put, snapshot,
};
use crate::{Direction, Key, KeyRange, Value, prefix_end};

const FORWARD: Direction = Direction::Forward;
const REVERSE: Direction = Direction::Reverse;

pub fn opens_empty(backend: &dyn Backend) {
    let store = backend.open();
    assert_eq!(entries(&*store, KeyRange::all(), FORWARD), vec![]);
    assert_eq!(entries(&*store, KeyRange::all(), REVERSE), vec![]);
    assert_eq!(get(&*store, b"missing"), None);
}

pub fn scans_in_key_order(backend: &dyn Backend) {
    let store = backend.open();
    for name in ["m", "a", "z", "b", "aa", "B", "mm"] {
        put(&*store, name, name);
    }
    let sorted = ["B", "a", "aa", "b", "m", "mm", "z"];
    assert_eq!(names(&*store, KeyRange::all(), FORWARD), sorted);
    let reversed: Vec<&str> = sorted.into_iter().rev().collect();
    assert_eq!(names(&*store, KeyRange::all(), REVERSE), reversed);
}

pub fn scans_only_its_range(backend: &dyn Backend) {
    let store = backend.open();
    for name in ["a", "b", "c", "d"] {
        put(&*store, name, name);
    }
    let cases: [(KeyRange, &[&str]); 7] = [
        (KeyRange::new("b", "d"), &["b", "c"]),
        (KeyRange::new("b", "bb"), &["b"]),
        (KeyRange::new("bb", "c"), &[]),
        (KeyRange::new("c", "c"), &[]),
        (KeyRange::new("d", "a"), &[]),
        (KeyRange { start: key("c"), end: None }, &["c", "d"]),
        (KeyRange::new("", "b"), &["a"]),
    ];
    for (range, expected) in cases {
        assert_eq!(names(&*store, range.clone(), FORWARD), expected, "{range:?}");
        let reversed: Vec<&str> = expected.iter().rev().copied().collect();
        assert_eq!(names(&*store, range.clone(), REVERSE), reversed, "{range:?} in reverse");
    }
}

pub fn scans_prefixes(backend: &dyn Backend) {
    let store = backend.open();
    let keys: [&[u8]; 8] =
        [b"p", b"p\x00", b"p\xFE", b"p\xFF", b"p\xFF\xFF", b"q", b"\xFF", b"\xFF\xFF\x01"];
    commit(&*store, |batch| keys.iter().for_each(|key| batch.put(*key, "v")));
    let prefixes: [&'static [u8]; 6] = [b"", b"p", b"p\xFF", b"\xFF", b"\xFF\xFF", b"nothing"];
    for prefix in prefixes {
        let mut expected: Vec<Vec<u8>> =
            keys.iter().filter(|key| key.starts_with(prefix)).map(|key| key.to_vec()).collect();
        expected.sort();
        for direction in [FORWARD, REVERSE] {
            let range = KeyRange::prefix(Key::from_static(prefix));
            let found: Vec<Vec<u8>> =
                entries(&*store, range, direction).into_iter().map(|(key, _)| key).collect();
            assert_eq!(found, expected, "prefix {prefix:?}, {direction:?}");
            expected.reverse();
        }
    }
    assert_eq!(prefix_end(b"p\xFF"), Some(Key::from_static(b"q")));
}

pub fn scans_stop_when_told(backend: &dyn Backend) {
    let store = backend.open();
    for name in ["a", "b", "c", "d"] {
        put(&*store, name, name);
    }
    let first = |direction, limit| -> Vec<Vec<u8>> {
        let found = entries_up_to(&*store, KeyRange::all(), direction, limit);
        found.into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(first(FORWARD, 1), [b"a"]);
    assert_eq!(first(FORWARD, 3), [b"a", b"b", b"c"]);
    assert_eq!(first(REVERSE, 2), [b"d", b"c"]);
}

pub fn keeps_binary_keys_and_empty_values(backend: &dyn Backend) {
    let store = backend.open();
    let keys: Vec<Vec<u8>> = vec![
        vec![0],
        vec![0, 0],
        vec![0, 0xFF],
        vec![0, 1],
        vec![1],
        vec![0x7F],
        vec![0x80],
        vec![0xFF],
        vec![0xFF, 0],
        vec![0xFF, 0xFF],
    ];
    commit(&*store, |batch| {
        for key in &keys {
            batch.put(Key::from(key.clone()), Value::new());
        }
    });
    let mut sorted = keys.clone();
    sorted.sort();
    let found = entries(&*store, KeyRange::all(), FORWARD);
    assert_eq!(found.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(), sorted);
    assert!(found.iter().all(|(_, value)| value.is_empty()));
    // An empty value is a value, not a missing key.
    assert_eq!(get(&*store, &[0]), Some(Value::new()));
    assert_eq!(get(&*store, &[0, 0, 0]), None);
}

pub fn keeps_the_empty_key(backend: &dyn Backend) {
    let store = backend.open();
    commit_locking(&*store, &[Key::new()], |batch| batch.put(Key::new(), "root"));
    assert_eq!(get_text(&*store, "").as_deref(), Some("root"));
    assert_eq!(entries(&*store, KeyRange::all(), REVERSE).len(), 1);
}

pub fn keeps_large_values(backend: &dyn Backend) {
    let store = backend.open();
    let large: Value = (0..4 * 1024 * 1024_u32).map(|number| (number % 251) as u8).collect();
    commit(&*store, |batch| {
        batch.put("large", large.clone());
        batch.put("small", "s");
    });
    assert!(get(&*store, b"large") == Some(large.clone()), "the large value differs");
    let found = entries(&*store, KeyRange::all(), FORWARD);
    assert!(found[0].1 == large, "the large value differs in a scan");
}

/// A scan that also reads keys visits at most the given number of entries, and reads nothing older
/// than the scan.
pub fn scans_then_gets(backend: &dyn Backend) {
    let store = backend.open();
    for name in ["a", "b", "c", "d"] {
        put(&*store, name, name);
    }
    let read = |entries_max, keys: &[Key]| {
        let mut found = Vec::new();
        let mut visit = |key: &[u8], _: &[u8]| {
            found.push(key.to_vec());
            ControlFlow::Continue(())
        };
        let range = KeyRange::new("b", "e");
        let scan = store.scan_then_get(range, FORWARD, entries_max, &mut visit, keys);
        let values = block_on(scan).expect("the read succeeds");
        (found, values)
    };
    let value = |text: &'static str| Some(Value::from_static(text.as_bytes()));
    let all: [&[u8]; 3] = [b"b", b"c", b"d"];
    assert_eq!(read(None, &[]), (all.map(<[u8]>::to_vec).to_vec(), vec![]));
    for (entries_max, visited) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3)] {
        let (found, values) = read(Some(entries_max), &[key("z"), key("a")]);
        assert_eq!(found, all[..visited], "at most {entries_max}");
        assert_eq!(values, [None, value("a")]);
    }
}

pub fn gets_many_in_the_order_asked(backend: &dyn Backend) {
    let store = backend.open();
    put(&*store, "a", "1");
    put(&*store, "b", "2");
    let keys = [key("b"), key("missing"), key("a"), key("b")];
    let values = block_on(store.get_many(&keys)).expect("the read succeeds");
    let expected = [Some(Value::from("2")), None, Some(Value::from("1")), Some(Value::from("2"))];
    assert_eq!(values, expected);
    assert_eq!(block_on(store.get_many(&[])).expect("the read succeeds"), vec![]);
}

/// Two keys that always change together never read differently, by key or by scan.
pub fn reads_one_state(backend: &dyn Backend) {
    let store = backend.open();
    let keys = [key("left"), key("right")];
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _done = AtEnd(|| done.store(true, Ordering::Release));
            for round in 0..200 {
                commit_locking(&*store, &keys, |batch| {
                    batch.put("left", round.to_string());
                    batch.put("right", round.to_string());
                });
            }
        });
        while !done.load(Ordering::Acquire) {
            let values = block_on(store.get_many(&keys)).expect("the read succeeds");
            assert_eq!(values[0], values[1]);
            let scanned = entries(&*store, KeyRange::all(), FORWARD);
            assert!(scanned.windows(2).all(|pair| pair[0].1 == pair[1].1), "{scanned:?}");
        }
    });
}

pub fn snapshots_do_not_change(backend: &dyn Backend) {
    let store = backend.open();
    let before = snapshot(&*store);
    commit(&*store, |batch| {
        batch.put("a", "1");
        batch.put("b", "1");
        batch.put("c", "1");
    });
    let snapshot = snapshot(&*store);
    commit(&*store, |batch| {
        batch.put("a", "2");
        batch.delete("b");
        batch.delete_range(KeyRange::new("c", "d"));
        batch.put("e", "2");
    });
    assert_eq!(entries(&*before, KeyRange::all(), FORWARD), vec![]);
    assert_eq!(names(&*snapshot, KeyRange::all(), FORWARD), ["a", "b", "c"]);
    assert_eq!(names(&*snapshot, KeyRange::all(), REVERSE), ["c", "b", "a"]);
    assert_eq!(get_text(&*snapshot, "a").as_deref(), Some("1"));
    let many = block_on(snapshot.get_many(&[key("b"), key("e")])).expect("the read succeeds");
    assert_eq!(many, [Some(Value::from("1")), None]);
    assert_eq!(names(&*store, KeyRange::all(), FORWARD), ["a", "e"]);
}

/// A write is visible to readers by the time it is acknowledged.
pub fn reads_follow_acknowledged_writes(backend: &dyn Backend) {
    let store = backend.open();
    for round in 0..50 {
        put(&*store, "k", &round.to_string());
        assert_eq!(number(get(&*store, b"k").as_ref()), round);
        assert_eq!(number(get(&*store.snapshot(), b"k").as_ref()), round);
    }
}
