use std::sync::Arc;

use zenobe_store::conformance::{Backend, block_on};
use zenobe_store::{Batch, CommitOutcome, Decision, Key, Reader, Result, Store, Value, WriteSet};
use zenobe_store_postgres::{Options, PostgresStore};
use zenobe_testing::Postgres;

/// A database for one test.
pub struct Database {
    pub url: String,
    pub options: Options,
}

impl Database {
    pub fn new(options: Options) -> Database {
        Database { url: Postgres::shared().database(), options }
    }

    pub fn store(&self) -> PostgresStore {
        open(&self.url, self.options.clone())
    }
}

pub fn open(url: &str, options: Options) -> PostgresStore {
    block_on(PostgresStore::open(url, options)).expect("the store opens")
}

impl Backend for Database {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.store())
    }

    fn survives_reopening(&self) -> bool {
        true
    }

    fn open_beside(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.store()))
    }
}

pub fn get(store: &dyn Reader, key: &[u8]) -> Option<Value> {
    block_on(store.get(key)).expect("the read succeeds")
}

/// Adds one to the number at a key.
pub fn increment(store: &dyn Store, name: &str) -> Result<CommitOutcome> {
    let keys = [Key::copy_from_slice(name.as_bytes())];
    let mut decide = |reads: &[Option<Value>]| {
        let mut batch = Batch::new();
        batch.put(keys[0].clone(), (number(reads[0].as_ref()) + 1).to_string());
        batch.append("log/", 0, "x");
        Decision::Commit(batch)
    };
    block_on(store.write(WriteSet { guards: &[], keys: &keys }, &mut decide))
}

pub fn number(value: Option<&Value>) -> i64 {
    value.map_or(0, |value| std::str::from_utf8(value).unwrap().parse().unwrap())
}
