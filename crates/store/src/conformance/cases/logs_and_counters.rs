use std::sync::Mutex;

use futures_util::future::join_all;

use crate::conformance::Backend;
use crate::conformance::support::{
    block_on, commit, commit_locking, commit_together, entries, get, key, on_threads,
};
use crate::{
    Batch, Decision, Direction, Error, KeyRange, LogEnd, Reader, Store, Value, WriteSet,
    decode_counter, decode_log_entry, log_entry_key,
};

pub fn appends_are_numbered_from_one(backend: &dyn Backend) {
    let store = backend.open();
    let outcome = commit(&*store, |batch| {
        batch.append("log/a/", 0, "first");
        batch.append("log/b/", 7, "other");
        batch.append("log/a/", 0, "second");
    });
    assert_eq!(outcome.sequences, [1, 1, 2]);
    assert_eq!(commit(&*store, |batch| batch.append("log/a/", 0, "third")).sequences, [3]);
    let expected = ["first", "second", "third"].map(|text| text.as_bytes().to_vec());
    let found = log_entries(&*store, "log/a/");
    assert_eq!(found.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>(), expected);
    assert_eq!(found.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [1, 2, 3]);
    let other = get(&*store, &log_entry_key(b"log/b/", 1)).expect("the entry");
    assert_eq!(decode_log_entry(&other).expect("an entry"), (7, Value::from("other")));
}

/// Writers' clocks differ and get adjusted. The stamps of a log's entries never descend all the
/// same.
pub fn stamps_never_descend(backend: &dyn Backend) {
    let mut store = backend.open();
    let append = |store: &dyn Store, log: &'static str, stamp| {
        commit(store, |batch| batch.append(log, stamp, "x"));
    };
    for stamp in [5, 9, 3, 8, 10] {
        append(&*store, "log/a/", stamp);
    }
    append(&*store, "log/b/", 1);
    commit(&*store, |batch| {
        batch.append("log/a/", 20, "x");
        batch.append("log/a/", 4, "x");
        batch.delete_range(KeyRange::all());
    });
    // The end of a log outlives its entries.
    if backend.survives_reopening() {
        block_on(store.close()).expect("the store closes");
        drop(store);
        store = backend.open();
    }
    append(&*store, "log/a/", 6);
    append(&*store, "log/a/", 21);
    append(&*store, "log/b/", 2);
    assert_eq!(stamps(&*store, "log/a/"), [20, 21]);
    assert_eq!(stamps(&*store, "log/b/"), [2]);

    on_threads(6, |thread| {
        for round in 0..30 {
            append(&*store, "log/c/", (round * 7 + thread as u64 * 5) % 40);
        }
    });
    let stamps = stamps(&*store, "log/c/");
    assert_eq!(stamps.len(), 180);
    assert!(stamps.is_sorted(), "{stamps:?}");
}

fn stamps(reader: &dyn Reader, log: &str) -> Vec<u64> {
    let found = entries(reader, KeyRange::prefix(log.to_owned()), Direction::Forward);
    let stamp = |(_, entry): (_, Vec<u8>)| decode_log_entry(&entry.into()).expect("an entry").0;
    found.into_iter().map(stamp).collect()
}

/// A dropped log leaves nothing behind, and its name can be used again.
pub fn dropped_logs_start_anew(backend: &dyn Backend) {
    let mut store = backend.open();
    let append = |batch: &mut Batch| {
        batch.append("log/a/", 5, "x");
        batch.append("log/b/", 5, "x");
    };
    commit(&*store, append);
    commit(&*store, append);
    commit(&*store, |batch| batch.drop_log("log/a/"));
    assert_eq!(entries(&*store, KeyRange::all(), Direction::Forward).len(), 2, "the other's");
    if backend.survives_reopening() {
        block_on(store.close()).expect("the store closes");
        drop(store);
        store = backend.open();
    }
    // The same holds in the batch that drops it, and in the next one.
    let outcome = commit(&*store, |batch| {
        batch.append("log/a/", 1, "x");
        batch.append("log/a/", 1, "x");
        batch.drop_log("log/a/");
        batch.append("log/a/", 2, "x");
        batch.append("log/b/", 1, "x");
    });
    assert_eq!(outcome.sequences, [1, 2, 1, 3]);
    assert_eq!(commit(&*store, |batch| batch.append("log/a/", 1, "x")).sequences, [2]);
    assert_eq!(stamps(&*store, "log/a/"), [2, 2]);
}

/// A log whose end is set goes on from there, and every end can be listed.
pub fn log_ends_can_be_set_and_listed(backend: &dyn Backend) {
    let mut store = backend.open();
    let end = |sequence, stamp| LogEnd { sequence, stamp };
    let outcome = commit(&*store, |batch| {
        batch.append("log/a/", 5, "x");
        batch.set_log_end("log/a/", end(10, 70));
        batch.set_log_end("log/b/", end(20, 7));
        batch.append("log/a/", 6, "y");
        batch.drop_log("log/c/");
        batch.set_log_end("log/c/", end(1, 1));
        batch.set_log_end("log/d/", end(9, 9));
        batch.mutations.push(crate::Mutation::ForgetLog { log: key("log/d/") });
    });
    assert_eq!(outcome.sequences, [1, 11]);
    assert_eq!(stamps(&*store, "log/a/"), [5, 70]);
    if backend.survives_reopening() {
        block_on(store.close()).expect("the store closes");
        drop(store);
        store = backend.open();
    }
    let listed = |start: &str, count_max| {
        block_on(store.log_ends(start.as_bytes(), count_max)).expect("they can be read")
    };
    let ends =
        [(key("log/a/"), end(11, 70)), (key("log/b/"), end(20, 7)), (key("log/c/"), end(1, 1))];
    assert_eq!(listed("", 10), ends);
    assert_eq!(listed("", 2), ends[..2]);
    assert_eq!(listed("log/a0", 1), ends[1..2]);
    assert_eq!(listed("log/d", 10), []);
    assert_eq!(commit(&*store, |batch| batch.append("log/b/", 1, "x")).sequences, [21]);
    assert_eq!(stamps(&*store, "log/b/"), [7]);
}

fn log_entries(reader: &dyn Reader, log: &str) -> Vec<(u64, Vec<u8>)> {
    let found = entries(reader, KeyRange::prefix(log.to_owned()), Direction::Forward);
    let sequence = |key: &[u8]| {
        let bytes = key[log.len()..].try_into().expect("eight bytes after the log's key");
        u64::from_be_bytes(bytes)
    };
    let value = |entry: Vec<u8>| decode_log_entry(&entry.into()).expect("an entry").1.to_vec();
    found.into_iter().map(|(key, entry)| (sequence(&key), value(entry))).collect()
}

/// Appends of concurrent writers are numbered without gaps, each batch knows its own numbers, and
/// the numbers follow the order in which writes of one key were decided.
pub fn appends_follow_the_commit_order(backend: &dyn Backend) {
    let store = backend.open();
    let given = Mutex::new(Vec::new());
    on_threads(6, |_| {
        for _ in 0..30 {
            given.lock().unwrap().extend(append_next_number(&*store));
        }
    });
    let mut given = given.into_inner().unwrap();
    given.sort_unstable();
    let expected: Vec<u64> = (1..=180).collect();
    assert_eq!(given, expected);
    for (position, (sequence, value)) in log_entries(&*store, "log/").into_iter().enumerate() {
        assert_eq!(sequence, position as u64 + 1);
        assert_eq!(value, sequence.to_string().into_bytes(), "entry {sequence}");
    }
}

/// Increments a key and appends its new value in the same batch: value and sequence number agree.
fn append_next_number(store: &dyn Store) -> Vec<u64> {
    let keys = [key("last")];
    let mut decide = |reads: &[Option<Value>]| {
        let next = crate::conformance::support::number(reads[0].as_ref()) + 1;
        let mut batch = Batch::new();
        batch.put("last", next.to_string());
        batch.append("log/", 0, next.to_string());
        Decision::Commit(batch)
    };
    let set = WriteSet { guards: &[], keys: &keys };
    block_on(store.write(set, &mut decide)).expect("the write commits").sequences
}

/// Trimming a log, even entirely, does not restart its numbering, in this run or the next.
pub fn numbering_goes_on_after_trimming(backend: &dyn Backend) {
    let mut store = backend.open();
    for expected in 1..=5 {
        assert_eq!(commit(&*store, |batch| batch.append("log/", 0, "x")).sequences, [expected]);
    }
    commit(&*store, |batch| batch.delete_range(KeyRange::prefix("log/")));
    assert_eq!(commit(&*store, |batch| batch.append("log/", 0, "x")).sequences, [6]);
    commit(&*store, |batch| batch.delete_range(KeyRange::all()));
    if backend.survives_reopening() {
        block_on(store.close()).expect("the store closes");
        drop(store);
        store = backend.open();
    }
    assert_eq!(commit(&*store, |batch| batch.append("log/", 0, "x")).sequences, [7]);
    assert_eq!(log_entries(&*store, "log/").len(), 1);
}

pub fn counters_add_up(backend: &dyn Backend) {
    let store = backend.open();
    commit(&*store, |batch| {
        batch.add("count", 5);
        batch.add("count", -7);
        batch.add("other", i64::MAX);
        batch.add("zero", 0);
    });
    assert_eq!(counter(&*store, "count"), -2);
    assert_eq!(counter(&*store, "other"), i64::MAX);
    commit(&*store, |batch| batch.add("count", 2));
    // A counter at zero takes no space.
    for name in ["count", "zero"] {
        assert_eq!(get(&*store, name.as_bytes()), None, "{name}");
    }
    assert_eq!(entries(&*store, KeyRange::all(), Direction::Forward).len(), 1);
    commit(&*store, |batch| batch.add("count", 3));
    assert_eq!(counter(&*store, "count"), 3);
    assert_eq!(counter(&*store, "missing"), 0);
}

fn counter(reader: &dyn Reader, name: &str) -> i64 {
    decode_counter(get(reader, name.as_bytes()).as_deref()).expect("a counter")
}

pub fn counters_lose_nothing_under_load(backend: &dyn Backend) {
    let store = backend.open();
    on_threads(6, |thread| {
        for round in 0..40 {
            commit(&*store, |batch| {
                batch.add("shared", 1);
                batch.add(format!("own/{thread}"), 2);
                batch.put(format!("row/{thread}/{round}"), "x");
            });
        }
    });
    assert_eq!(counter(&*store, "shared"), 240);
    for thread in 0..6 {
        assert_eq!(counter(&*store, &format!("own/{thread}")), 80);
    }
}

type FillBatch<'a> = dyn Fn(&mut Batch) + Sync + 'a;

/// Counters may be put, deleted and deleted by range between additions, all in flight together.
pub fn counters_mix_with_other_mutations(backend: &dyn Backend) {
    let store = backend.open();
    let ten = Value::from_static(&[0, 0, 0, 0, 0, 0, 0, 10]);
    let steps: [Box<FillBatch<'_>>; 7] = [
        Box::new(|batch| batch.add("c", 1)),
        Box::new(|batch| batch.put("c", ten.clone())),
        Box::new(|batch| batch.add("c", 5)),
        Box::new(|batch| {
            batch.delete("c");
            batch.add("c", 7);
        }),
        Box::new(|batch| batch.add("c", 1)),
        Box::new(|batch| batch.delete_range(KeyRange::new("b", "d"))),
        Box::new(|batch| {
            batch.add("c", 3);
            batch.put("c", ten.clone());
            batch.add("c", 1);
        }),
    ];
    let expected = [1, 10, 15, 7, 8, 0, 11];
    for (step, expected) in steps.iter().zip(expected) {
        commit_locking(&*store, &[key("c")], step);
        assert_eq!(counter(&*store, "c"), expected);
    }

    // The same again, all in flight together.
    let batches: Vec<Batch> = steps
        .iter()
        .map(|step| {
            let mut batch = Batch::new();
            step(&mut batch);
            batch
        })
        .collect();
    commit_together(&*store, &key("c"), &batches);
    assert_eq!(counter(&*store, "c"), 11);
}

/// A batch that adds to something that is not a counter writes nothing and affects no other batch.
pub fn adding_to_something_else_fails_alone(backend: &dyn Backend) {
    let store = backend.open();
    commit(&*store, |batch| {
        batch.add("good", 1);
        batch.add("turned", 1);
        batch.put("bad", "not eight bytes");
    });
    // This key was a counter before.
    commit(&*store, |batch| batch.put("turned", "x"));
    for name in ["bad", "turned"] {
        assert_refused_among_others(&*store, |batch| {
            batch.put("left", "x");
            batch.add("good", 1);
            batch.add(name.to_owned(), 1);
        });
    }
    assert_refused_among_others(&*store, |batch| {
        batch.put("good", "x");
        batch.add("good", 1);
    });
    assert_eq!(get(&*store, b"left"), None, "a refused batch writes nothing");
    assert_eq!(counter(&*store, "good"), 1);
    assert_eq!(store.statistics().write_failure, None);

    // Replacing the value makes it a counter again.
    commit(&*store, |batch| {
        batch.delete("bad");
        batch.add("bad", 2);
    });
    commit(&*store, |batch| batch.delete_range(KeyRange::prefix("turned")));
    commit(&*store, |batch| batch.add("turned", 3));
    assert_eq!((counter(&*store, "bad"), counter(&*store, "turned")), (2, 3));
}

/// Runs a batch among writes that are in flight with it. It must fail; they must not.
fn assert_refused_among_others(store: &dyn Store, fill: impl Fn(&mut Batch)) {
    let mut refused = Batch::new();
    fill(&mut refused);
    let mut decisions: Vec<_> = (0..9)
        .map(|turn| {
            let mut batch = Batch::new();
            batch.add("others", 1);
            let batch = if turn == 4 { refused.clone() } else { batch };
            move |_: &[Option<Value>]| Decision::Commit(batch.clone())
        })
        .collect();
    let before = counter(store, "others");
    let writes = decisions.iter_mut().map(|decide| store.write(WriteSet::default(), decide));
    for (turn, outcome) in block_on(join_all(writes)).into_iter().enumerate() {
        match turn {
            4 => assert!(matches!(outcome, Err(Error::Corrupt { .. })), "{outcome:?}"),
            _ => assert!(outcome.is_ok(), "{turn}: {outcome:?}"),
        }
    }
    assert_eq!(counter(store, "others"), before + 8);
}
