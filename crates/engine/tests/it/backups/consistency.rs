//! Backups of a table that is written to all the time.

use futures_util::future::{join, join_all};
use zenobe_store::yielding::YieldingStore;

use super::*;

const SEEDS: std::ops::Range<u64> = 0..12;
const WRITERS: usize = 4;
const TRANSACTIONS: u64 = 25;
const BACKUPS: usize = 6;

/// Each transaction raises the writer's two items and an item that all share, in one commit. A backup has whole transactions
/// of one moment: a writer's items agree, together they add up to the shared one, and the moment is between the request
/// and its answer.
#[test]
fn a_backup_has_whole_transactions_of_one_moment() {
    for seed in SEEDS {
        for (is_shared, has_recovery) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            block_on(async {
                let memory = if is_shared { MemoryStore::shared() } else { MemoryStore::new() };
                storm(memory, seed, has_recovery).await;
            });
        }
    }
}

/// How many transactions of each writer have begun, and how many are committed.
#[derive(Default)]
struct Progress {
    begun: [std::cell::Cell<u64>; WRITERS],
    committed: [std::cell::Cell<u64>; WRITERS],
}

async fn storm(memory: MemoryStore, seed: u64, has_recovery: bool) {
    let is_shared = memory.is_shared();
    let clock = Arc::new(ManualClock::new(START_MS));
    let memory = Arc::new(memory);
    let store = Arc::new(YieldingStore::new(memory.clone(), seed));
    let mut script = open(store.clone(), &clock).await;
    // On a shared store, half of the requests go to another engine, which learns of backups only from the store.
    let other = if is_shared { Some(open(store, &clock).await) } else { None };
    script.run(&["create t pk:S"]).await;
    let table = script.table("t");
    let engines = [script.engine(), other.as_ref().map_or(script.engine(), Script::engine)];
    if has_recovery {
        engines[0].update_continuous_backups(&table, true, None).await.unwrap();
    }
    let progress = Progress::default();
    let writers = (0..WRITERS).map(|writer| write(engines[writer % 2], &table, writer, &progress));
    let backups = async {
        let mut backups = Vec::new();
        for number in 0..BACKUPS {
            clock.advance_ms(1);
            let earliest = progress.committed.each_ref().map(std::cell::Cell::get);
            let made = engines[number % 2].create_backup(&table, "storm").await.unwrap();
            let latest = progress.begun.each_ref().map(std::cell::Cell::get);
            backups.push((made.id, earliest, latest));
            if number % 2 == 1 {
                // Some are copied during the storm, some afterwards.
                engines[0].run_pending_work().await.unwrap();
            }
        }
        backups
    };
    let (_, backups) = join(join_all(writers), backups).await;

    let script = open(memory.clone(), &clock).await;
    for (id, earliest, latest) in backups {
        let target = script.table("restored");
        begin_restore(script.engine(), &table, &id, target.clone()).await.unwrap();
        script.engine().run_pending_work().await.unwrap();
        let restored = state(script.engine(), &target).await;
        check(&restored, earliest, latest);
        script.engine().delete_table(&target).await.unwrap();
    }
    for _ in 0..2 {
        script.engine().run_pending_work().await.unwrap();
    }
    let found = script.engine().check_consistency(&table).await.unwrap();
    assert_eq!(found, []);
    let kept = count_keys(&*memory, b'U').await;
    assert_eq!(kept > 0, has_recovery, "{kept} undo rows, seed {seed}");
}

async fn write(engine: &Engine, table: &TableName, writer: usize, progress: &Progress) {
    for number in 1..=TRANSACTIONS {
        progress.begun[writer].set(number);
        let keys = [format!("left-{writer}"), format!("right-{writer}"), "all".to_owned()];
        let add = |key: String| {
            TransactAction::Update(UpdateItem {
                table: table.clone(),
                key: Attributes::from([("pk".to_owned(), AttributeValue::S(key))]),
                update: Some(add_one()),
                condition: None,
            })
        };
        let actions = keys.map(add).to_vec();
        engine.transact_write(TransactWrite { token: None, actions }).await.unwrap();
        progress.committed[writer].set(number);
    }
}

fn add_one() -> zenobe_expression::Update {
    let values = [(":one".to_owned(), AttributeValue::N(zenobe_value::Number::from(1_u64)))].into();
    zenobe_expression::Binder::new(None, Some(&values)).update("ADD v :one").unwrap()
}

fn check(restored: &State, earliest: [u64; WRITERS], latest: [u64; WRITERS]) {
    let value = |key: &str| {
        let item = restored.iter().find(|item| text(item, "pk") == key);
        item.map_or(0, |item| number(item, "v"))
    };
    let mut sum = 0;
    for (writer, (earliest, latest)) in earliest.into_iter().zip(latest).enumerate() {
        let left = value(&format!("left-{writer}"));
        assert_eq!(left, value(&format!("right-{writer}")), "half a transaction: {restored:?}");
        let window = earliest..=latest;
        assert!(window.contains(&left), "{left} is not within {window:?}");
        sum += left;
    }
    assert_eq!(value("all"), sum, "several moments: {restored:?}");
}
