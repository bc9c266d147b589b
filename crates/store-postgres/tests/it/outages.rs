//! Stores that become unreachable, and return.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use zenobe_store::conformance::block_on;
use zenobe_store::{Direction, Error, KeyRange, Reader, Store};
use zenobe_store_postgres::Options;
use zenobe_testing::{NetworkFault, Postgres, Proxy, wait_until};

use crate::support::{Database, get, increment, number, open};

/// How long a request waits for a store that is away. On a busy machine, connecting takes a while even if it is there.
const PATIENCE: Duration = Duration::from_secs(1);

/// All sessions are terminated again and again while two nodes write. No write fails, and none is lost.
#[test]
fn sessions_that_are_ended_cost_no_write() {
    const WRITERS: usize = 4;
    let database = Database::new(Options::default());
    let stores = [database.store(), database.store()];
    let name = database.url.rsplit('/').next().unwrap().split('?').next().unwrap();
    let end_all = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{name}'"
    );
    let finished = AtomicUsize::new(0);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, finished) = (&stores[writer % 2], &finished);
            scope.spawn(move || {
                for _ in 0..40 {
                    increment(store, "k").expect("the write commits");
                }
                finished.fetch_add(1, Ordering::Release);
            });
        }
        while finished.load(Ordering::Acquire) < WRITERS {
            Postgres::shared().execute("postgres", &end_all);
            thread::sleep(Duration::from_millis(100));
        }
    });
    for store in &stores {
        assert_eq!(number(get(store, b"k").as_ref()), 160);
    }
}

/// While the store is unreachable, requests fail and nothing is written. When it is back, everything works again.
#[test]
fn a_store_that_is_away_is_said_to_be() {
    let database = Database::new(Options::default());
    let proxy = Proxy::start(Postgres::shared().port);
    let options = Options { patience: PATIENCE, ..Options::default() };
    let store = open(&proxy.url(&database.url), options);
    increment(&store, "k").expect("the write commits");
    proxy.set(NetworkFault::Down);
    let read = block_on(store.get(b"k"));
    assert!(matches!(read, Err(Error::Unavailable { .. })), "{read:?}");
    let read = block_on(store.snapshot().get(b"k"));
    assert!(matches!(read, Err(Error::Unavailable { .. })), "{read:?}");
    let written = increment(&store, "k");
    assert!(
        matches!(written, Err(Error::Unavailable { .. } | Error::Uncertain { .. })),
        "{written:?}"
    );
    proxy.set(NetworkFault::None);
    wait_until(|| block_on(store.get(b"k")).is_ok());
    let before = number(get(&store, b"k").as_ref());
    if matches!(written, Err(Error::Unavailable { .. })) {
        assert_eq!(before, 1, "nothing was written");
    }
    increment(&store, "k").expect("the write commits");
    assert_eq!(number(get(&database.store(), b"k").as_ref()), before + 1);
}

/// A server that stands still, whose connections stay open, is away all the same.
#[test]
fn a_store_that_does_not_answer_is_said_to_be_away() {
    let database = Database::new(Options::default());
    let proxy = Proxy::start(Postgres::shared().port);
    let options = Options { patience: PATIENCE, ..Options::default() };
    let store = open(&proxy.url(&database.url), options);
    increment(&store, "k").expect("the write commits");
    let snapshot = store.snapshot();
    assert_eq!(number(get(&*snapshot, b"k").as_ref()), 1);
    proxy.set(NetworkFault::Silent);
    let read = block_on(store.get(b"k"));
    assert!(matches!(read, Err(Error::Unavailable { .. })), "{read:?}");
    let read = block_on(snapshot.get(b"k"));
    assert!(matches!(read, Err(Error::Unavailable { .. })), "{read:?}");
    for entries_max in [Some(1), None] {
        let mut visit = |_: &[u8], _: &[u8]| ControlFlow::Continue(());
        let range = KeyRange::all();
        let scan = store.scan_then_get(range, Direction::Forward, entries_max, &mut visit, &[]);
        let read = block_on(scan);
        assert!(matches!(read, Err(Error::Unavailable { .. })), "{read:?}");
    }
    proxy.set(NetworkFault::None);
    wait_until(|| block_on(store.get(b"k")).is_ok());
    assert_eq!(number(get(&store, b"k").as_ref()), 1);
}

/// A snapshot that is too old fails with an error, and returns its connection.
#[test]
fn snapshots_end() {
    let options =
        Options { view_age_max: Duration::from_millis(200), views: 1, ..Options::default() };
    let store = Database::new(options).store();
    increment(&store, "k").expect("the write commits");
    let snapshot = store.snapshot();
    assert_eq!(number(get(&*snapshot, b"k").as_ref()), 1);
    // There is one connection for snapshots. The second snapshot gets it when the first has ended.
    assert_eq!(number(get(&*store.snapshot(), b"k").as_ref()), 1);
    let read = block_on(snapshot.get(b"k"));
    assert!(matches!(read, Err(Error::Unavailable { .. })), "{read:?}");
}
