//! Backups: what they hold, while their items are copied and afterwards, and what remains in the store.

mod consistency;
mod interruptions;
mod life;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use zenobe_engine::Engine;
use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::*;
use zenobe_engine::error::Error;
use zenobe_engine::restore::{RestoreFrom, RestoreOverrides, RestoreTable};
use zenobe_store::Store;
use zenobe_store::memory::MemoryStore;
use zenobe_value::{AttributeValue, Attributes};

use crate::support::commands::Script;
use crate::support::world::{DAY_MS, START_MS, World};
use crate::support::{block_on, count_keys, on_each_store, open, open_with};

/// What a table holds, in the order of its keys.
type State = Vec<Attributes>;

impl World {
    /// With table `t`, without recovery.
    async fn with_table(store: MemoryStore) -> World {
        let mut world = World::new(store).await;
        assert_eq!(world.script.run(&["create t pk:S"]).await, "ok\n");
        world
    }

    async fn put(&mut self, key: &str, value: u32) {
        let text = self.script.run(&[&format!(r#"put t {{"pk": "{key}", "v": {value}}}"#)]).await;
        assert!(!text.starts_with("error"), "{text}");
    }

    /// Backs up `t`, and returns the backup's id.
    async fn back_up(&self) -> String {
        self.engine().create_backup(&self.script.table("t"), "nightly").await.unwrap().id
    }

    async fn work(&self) {
        // What becomes garbage in the first round goes in the second.
        for _ in 0..2 {
            self.engine().run_pending_work().await.unwrap();
        }
    }

    async fn state(&self, table: &str) -> State {
        state(self.engine(), &self.script.table(table)).await
    }

    /// What a backup holds: restores it into a table, and removes that again.
    async fn restored(&self, id: &str) -> State {
        self.begin_restore(id, "restored").await.unwrap();
        self.work().await;
        let state = self.state("restored").await;
        let table = self.script.table("restored");
        assert_eq!(self.engine().check_consistency(&table).await.unwrap(), []);
        self.engine().delete_table(&table).await.unwrap();
        self.work().await;
        state
    }

    async fn begin_restore(&self, id: &str, target: &str) -> Result<(), Error> {
        begin_restore(self.engine(), &self.script.table("t"), id, self.script.table(target)).await
    }
}

async fn begin_restore(
    engine: &Engine,
    table: &TableName,
    id: &str,
    target: TableName,
) -> Result<(), Error> {
    let source = RestoreFrom::Backup { table: table.clone(), id: id.to_owned() };
    let overrides = RestoreOverrides::default();
    engine.restore_table(RestoreTable { source, target, overrides }).await.map(drop)
}

async fn state(engine: &Engine, table: &TableName) -> State {
    let mut items = BTreeMap::new();
    let mut scan = Scan {
        table: table.clone(),
        index: None,
        segment: None,
        page: PageRequest { consistent: true, ..PageRequest::default() },
    };
    loop {
        let page = engine.scan(&scan).await.unwrap();
        for item in page.items.iter() {
            let item = item.decode();
            assert!(items.insert(text(&item, "pk"), item).is_none(), "an item twice");
        }
        match page.last_evaluated_key {
            None => return items.into_values().collect(),
            last => scan.page.start_key = last,
        }
    }
}

fn text(item: &Attributes, name: &str) -> String {
    match &item[name] {
        AttributeValue::S(text) => text.clone(),
        other => panic!("{name} is {other:?}"),
    }
}

fn number(item: &Attributes, name: &str) -> u64 {
    match &item[name] {
        AttributeValue::N(number) => number.to_i64().unwrap().unsigned_abs(),
        other => panic!("{name} is {other:?}"),
    }
}
