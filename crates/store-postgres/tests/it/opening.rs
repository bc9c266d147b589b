//! Opening a store: URLs, options, and what is refused.

use std::thread;

use zenobe_store::Store;
use zenobe_store::conformance::block_on;
use zenobe_store_postgres::{Options, PostgresStore};
use zenobe_testing::Postgres;

use crate::support::{Database, get, increment, number};

fn refusal(url: &str, options: Options) -> String {
    let opened = block_on(PostgresStore::open(url, options));
    opened.err().expect("it is refused").to_string()
}

/// Many nodes that start on an empty database at once all find their tables.
#[test]
fn nodes_that_start_together_agree() {
    let database = Database::new(Options::default());
    thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| increment(&database.store(), "k").expect("the write commits"));
        }
    });
    let store = database.store();
    assert_eq!(number(get(&store, b"k").as_ref()), 5);
    assert!(store.is_shared(), "an engine must not trust what it remembers of it");
}

#[test]
fn tables_of_a_newer_version_are_refused() {
    let database = Database::new(Options::default());
    drop(database.store());
    let name = database.url.rsplit('/').next().unwrap().split('?').next().unwrap();
    Postgres::shared().execute(name, "UPDATE zenobe_schema SET version = 7");
    let message = refusal(&database.url, Options::default());
    assert!(message.contains("version 7") && message.contains("up to 1"), "{message}");
}

#[test]
fn what_cannot_be_opened_says_why() {
    let server = Postgres::shared();
    let missing = refusal(&server.url("no_such_database"), Options::default());
    assert!(missing.contains("\"no_such_database\" does not exist"), "{missing}");
    // These might change in a moment, so they are waited for.
    let patient = |patience_ms: u64| {
        let patience = std::time::Duration::from_millis(patience_ms);
        Options { patience, ..Options::default() }
    };
    let without_tls = server.url("postgres").replace("sslmode=disable", "sslmode=require");
    let refused = refusal(&without_tls, patient(3_000));
    assert!(refused.contains("TLS"), "{refused}");
    let nobody = refusal("postgres://postgres@127.0.0.1:1/postgres", patient(300));
    assert!(nobody.contains("cannot be reached"), "{nobody}");
}

/// A host that takes connections and says nothing stands in for one that hangs.
#[test]
fn a_host_that_hangs_does_not_hide_the_primary() {
    let database = Database::new(Options::default());
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let primary = format!("127.0.0.1:{}", Postgres::shared().port);
    let both = format!("{},{primary}", silent.local_addr().unwrap());
    let url = format!("{}&connect_timeout=1", database.url.replace(&primary, &both));
    let store = block_on(PostgresStore::open(&url, Options::default())).expect("it opens");
    increment(&store, "k").expect("the write commits");
    assert_eq!(number(get(&store, b"k").as_ref()), 1);
}
