//! How often a node waits for the store: everything that a read or a write of known keys needs is sent before the first answer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use zenobe_api::{Api, ApiOptions, Operation};
use zenobe_engine::schema::Namespace;
use zenobe_engine::{Engine, EngineOptions};
use zenobe_store::conformance::{block_on, commit};
use zenobe_store::{Batch, Decision, Direction, Key, KeyRange, Reader, Store, Value, WriteSet};
use zenobe_store_postgres::{Options, PostgresStore};
use zenobe_testing::{Postgres, Proxy, wait_for};

use crate::support::{Database, number, open};

/// Only whoever waits for an answer that is held back needs this long.
const PATIENCE: Duration = Duration::from_secs(20);
/// The store's upkeep may send a statement of its own at any time, but hardly in each of these.
const TRIES: usize = 3;

struct Fixture {
    proxy: Proxy,
    store: Arc<PostgresStore>,
    _database: Database,
}

impl Fixture {
    fn new() -> Fixture {
        let database = Database::new(Options::default());
        let proxy = Proxy::start(Postgres::shared().port);
        let store = open(&proxy.url(&database.url), Options::default());
        commit(&store, |batch| {
            batch.put("guard", "1");
            (0..100).for_each(|row| batch.put(format!("row/{row:03}"), row.to_string()));
        });
        Fixture { proxy, store: Arc::new(store), _database: database }
    }

    /// Checks that an operation sends all its statements before it needs an answer, but for some at its end that it does not wait for.
    fn is_one_round_trip(&self, at_the_end: usize, operation: impl Fn() + Sync) {
        // Connections are opened, statements prepared and keys read by whoever comes first.
        (0..8).for_each(|_| operation());
        let mut sent = Vec::new();
        for _ in 0..TRIES {
            let usual = self.sent_by(0, &operation).expect("no answer is held back");
            let held_until = usual.saturating_sub(at_the_end);
            let at_once = self.sent_by(held_until, &operation);
            if Some(usual) == at_once && usual > at_the_end {
                return;
            }
            sent.push((usual, at_once));
        }
        panic!("the numbers of statements differ: {sent:?}");
    }

    /// How many statements an operation sends, while answers are held back until it has sent that many; `None` if it needs an answer
    /// before.
    fn sent_by(&self, held_until: usize, operation: &(impl Fn() + Sync)) -> Option<usize> {
        let before = self.statements_when_quiet();
        self.proxy.hold_answers_until(before + held_until);
        let outcome = thread::scope(|scope| {
            let (done, is_done) = mpsc::channel();
            scope.spawn(move || {
                operation();
                let _gone = done.send(());
            });
            let outcome = is_done.recv_timeout(PATIENCE);
            self.proxy.hold_answers_until(0);
            outcome
        });
        outcome.ok().map(|()| self.statements_when_quiet() - before)
    }

    fn statements_when_quiet(&self) -> usize {
        let is_quiet = || {
            let before = self.proxy.statements();
            thread::sleep(Duration::from_millis(20));
            (self.proxy.statements() == before).then_some(before)
        };
        wait_for(PATIENCE, is_quiet).expect("nothing is sent any more")
    }
}

fn guarded_get(store: &PostgresStore) {
    let keys = [Key::from("row/007"), Key::from("guard")];
    let values = block_on(store.get_many(&keys)).expect("the read succeeds");
    assert_eq!(values, [Some(Value::from("7")), Some(Value::from("1"))]);
}

#[test]
fn a_get_is_one_round_trip() {
    let fixture = Fixture::new();
    fixture.is_one_round_trip(0, || guarded_get(&fixture.store));
    fixture.is_one_round_trip(0, || {
        let value = block_on(fixture.store.get(b"row/001")).expect("the read succeeds");
        assert_eq!(value, Some("1".into()));
    });
}

fn page(store: &PostgresStore, entries_max: Option<usize>, expected: usize) {
    let mut count = 0;
    let mut visit = |_: &[u8], _: &[u8]| {
        count += 1;
        std::ops::ControlFlow::Continue(())
    };
    let (range, guard) = (KeyRange::prefix("row/"), [Key::from("guard")]);
    let reading = store.scan_then_get(range, Direction::Forward, entries_max, &mut visit, &guard);
    let versions = block_on(reading).expect("the read succeeds");
    assert_eq!((count, &versions[..]), (expected, &[Some(Value::from("1"))][..]));
}

/// A page and what is read with it. Without a limit it is a transaction, and nobody waits for its end.
#[test]
fn a_page_is_one_round_trip() {
    let fixture = Fixture::new();
    fixture.is_one_round_trip(0, || page(&fixture.store, Some(25), 25));
    fixture.is_one_round_trip(0, || page(&fixture.store, Some(500), 100));
    fixture.is_one_round_trip(1, || page(&fixture.store, None, 100));
}

#[test]
fn a_write_of_a_known_key_is_one_round_trip() {
    let fixture = Fixture::new();
    let (guards, keys) = ([Key::from("guard")], [Key::from("k")]);
    fixture.is_one_round_trip(0, || {
        let mut decide = |reads: &[Option<Value>]| {
            let mut batch = Batch::new();
            batch.put("k", (number(reads[1].as_ref()) + 1).to_string());
            batch.add("count", 1);
            Decision::Commit(batch)
        };
        let set = WriteSet { guards: &guards, keys: &keys };
        block_on(fixture.store.write(set, &mut decide)).expect("the write commits");
    });
}

/// The same for whole operations, as a client calls them.
#[test]
fn operations_are_one_round_trip() {
    let fixture = Fixture::new();
    let store = Arc::clone(&fixture.store) as Arc<dyn Store>;
    let engine = block_on(Engine::open(store, EngineOptions::default())).expect("it opens");
    let api = Api::new(engine, ApiOptions::default());
    let namespace = Namespace { account: "000000000000".into(), region: "us-east-1".into() };
    let namespace = Arc::new(namespace);
    let call = |operation, body: &str| {
        let response = block_on(api.handle(operation, &namespace, body.as_bytes()));
        assert_eq!(response.status, 200, "{body}: {:?}", response.body);
    };
    call(
        Operation::CreateTable,
        r#"{"TableName": "tab", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"},
                                     {"AttributeName": "s", "AttributeType": "N"}],
            "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"},
                          {"AttributeName": "s", "KeyType": "RANGE"}]}"#,
    );
    let put = |sort: usize, value: &str| {
        let item =
            format!(r#"{{"p": {{"S": "a"}}, "s": {{"N": "{sort}"}}, "v": {{"S": "{value}"}}}}"#);
        call(Operation::PutItem, &format!(r#"{{"TableName": "tab", "Item": {item}}}"#));
    };
    (0..60).for_each(|sort| put(sort, "old"));
    for consistent in [false, true] {
        let get = format!(
            r#"{{"TableName": "tab", "Key": {{"p": {{"S": "a"}}, "s": {{"N": "3"}}}}, "ConsistentRead": {consistent}}}"#
        );
        fixture.is_one_round_trip(0, || call(Operation::GetItem, &get));
        let query = |limit: &str| {
            format!(
                r#"{{"TableName": "tab", "KeyConditionExpression": "p = :p", {limit} "ConsistentRead": {consistent},
                     "ExpressionAttributeValues": {{":p": {{"S": "a"}}}}}}"#
            )
        };
        fixture.is_one_round_trip(0, || call(Operation::Query, &query(r#""Limit": 25,"#)));
        fixture.is_one_round_trip(1, || call(Operation::Query, &query("")));
    }
    // Another value each time: one that changes nothing is not written. The sizes differ, so counters change, too.
    let number = AtomicUsize::new(0);
    fixture.is_one_round_trip(0, || {
        let number = number.fetch_add(1, Ordering::Relaxed);
        put(7, &"x".repeat(number + 1));
    });
}

/// Reads that meet share statements, and each gets its own values.
#[test]
fn concurrent_reads_share_statements() {
    const READS: usize = 200;
    let fixture = Fixture::new();
    // All connections are there.
    (0..8).for_each(|_| guarded_get(&fixture.store));
    let keys: Vec<[Key; 2]> = (0..READS)
        .map(|number| [Key::from(format!("row/{:03}", number % 120)), Key::from("guard")])
        .collect();
    let before = fixture.proxy.statements();
    let reads = block_on(join_all(keys.iter().map(|keys| fixture.store.get_many(keys))));
    for (number, read) in reads.into_iter().enumerate() {
        let row = number % 120;
        let expected = (row < 100).then(|| Value::from(row.to_string()));
        assert_eq!(read.expect("the read succeeds"), [expected, Some(Value::from("1"))]);
    }
    let sent = fixture.proxy.statements() - before;
    assert!(sent < READS / 4, "{sent} statements for {READS} reads");
}

/// A reader that goes away takes nobody with it.
#[test]
fn reads_that_are_dropped_leave_the_others_alone() {
    let fixture = Fixture::new();
    let keys: Vec<[Key; 1]> = (0..100).map(|row| [Key::from(format!("row/{row:03}"))]).collect();
    for _ in 0..10 {
        let dropped = join_all(keys.iter().map(|keys| fixture.store.get_many(keys)));
        let dropped = futures_util::FutureExt::now_or_never(dropped);
        assert!(dropped.is_none(), "an answer takes a while");
    }
    let reads = block_on(join_all(keys.iter().map(|keys| fixture.store.get_many(keys))));
    for (row, read) in reads.into_iter().enumerate() {
        assert_eq!(read.expect("the read succeeds"), [Some(Value::from(row.to_string()))]);
    }
}
