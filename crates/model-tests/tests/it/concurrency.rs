//! Many tasks on few items: what each of them sees is as if all had run one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::*;
use zenobe_engine::error::{CancellationReason, Error};
use zenobe_engine::schema::*;
use zenobe_engine::Engine;
use zenobe_expression::{Binder, Condition, ExpressionKind, Update};
use zenobe_testing::Seed;
use zenobe_testing::linearizability::is_linearizable;
use zenobe_value::{AttributeValue, Attributes, EncodedItem, Number};

use crate::backend::{Backend, Disk, runtime};
use crate::linearizability::{Event, Operation, Response, State, Told};

const TASKS: usize = 8;

/// Each item behaves as if there were one copy of it, whoever does what to it, alone or in
/// transactions.
#[test]
fn every_item_is_linearizable() {
    on_every_backend("every_item_is_linearizable", async |store| {
        const ROUNDS: usize = 25;
        const KEYS: usize = 3;
        for round in 0..ROUNDS {
            let keys: Vec<String> = (0..KEYS).map(|key| format!("{round}-{key}")).collect();
            let recorder = Arc::new(Recorder::default());
            let mut tasks = JoinSet::new();
            for task in 0..TASKS {
                let (store, keys, recorder) = (store.clone(), keys.clone(), Arc::clone(&recorder));
                let random = store.seed.generator((round * TASKS + task) as u64);
                tasks.spawn(async move { play(&store, &keys, &recorder, random).await });
            }
            finish(tasks).await;
            for (key, events) in &*recorder.histories.lock().await {
                assert!(is_linearizable(None, events), "{key}: {events:#?}");
            }
        }
    });
}

/// Money moves between accounts in transactions of two and three. None appears or disappears, for
/// anyone at any time.
#[test]
fn transactions_are_all_or_nothing() {
    on_every_backend("transactions_are_all_or_nothing", async |store| {
        const ACCOUNTS: usize = 4;
        const START: i64 = 50;
        const ROUNDS: usize = 60;
        for account in 0..ACCOUNTS {
            store.put(&format!("account-{account}"), START).await;
        }
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let store = store.clone();
            let mut random = store.seed.generator(task as u64);
            tasks.spawn(async move {
                let accounts: Vec<String> =
                    (0..ACCOUNTS).map(|account| format!("account-{account}")).collect();
                for _ in 0..ROUNDS {
                    store.transfer(&accounts, &mut random).await;
                    let seen = store.get_together(&accounts).await;
                    let total: i64 = seen.iter().map(|state| state.unwrap_or(0)).sum();
                    assert_eq!(total, START * ACCOUNTS as i64, "{seen:?}");
                    assert!(seen.iter().all(|state| *state >= Some(0)), "{seen:?}");
                }
            });
        }
        finish(tasks).await;
    });
}

/// Reading, adding one and writing back on condition that nobody else did: each success counts
/// once.
#[test]
fn optimistic_locking_loses_no_update() {
    on_every_backend("optimistic_locking_loses_no_update", async |store| {
        const SUCCESSES: usize = 40;
        store.put("counter", 0).await;
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            let store = store.clone();
            tasks.spawn(async move {
                let mut successes = 0;
                while successes < SUCCESSES {
                    let expected = store.get("counter").await.expect("the counter is there");
                    let swap = Operation::Swap { expected, new: expected + 1 };
                    if store.perform("counter", swap).await != Response::Before(Some(expected)) {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    successes += 1;
                }
            });
        }
        finish(tasks).await;
        assert_eq!(store.get("counter").await, Some((TASKS * SUCCESSES) as i64));
    });
}

/// Some want one item, some want it together with another. Of all who want it, one gets it.
#[test]
fn a_contested_item_has_one_creator() {
    on_every_backend("a_contested_item_has_one_creator", async |store| {
        const ITEMS: usize = 40;
        let wins: Arc<Vec<AtomicUsize>> =
            Arc::new((0..ITEMS).map(|_| AtomicUsize::new(0)).collect());
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let (store, wins) = (store.clone(), Arc::clone(&wins));
            tasks.spawn(async move {
                for item in 0..ITEMS {
                    let won = if task % 2 == 0 {
                        let create = Operation::Create(task as i64);
                        let response = store.perform(&format!("item-{item}"), create).await;
                        if response == Response::Before(None) { vec![item] } else { vec![] }
                    } else {
                        let both = [item, (item + 1) % ITEMS];
                        if store.create_both(both, task as i64).await {
                            both.to_vec()
                        } else {
                            vec![]
                        }
                    };
                    for item in won {
                        wins[item].fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
        finish(tasks).await;
        for (item, wins) in wins.iter().enumerate() {
            assert_eq!(wins.load(Ordering::SeqCst), 1, "item {item}");
        }
    });
}

fn on_every_backend(test: &str, run: impl AsyncFn(Store)) {
    let seed = Seed::announce(test);
    for backend in [Backend::Memory, Backend::Retrying, Backend::Embedded] {
        let disk = Disk::new(backend);
        runtime(true).block_on(async {
            let store = Store::open(&disk, seed).await;
            run(store.clone()).await;
            let found = store.engine.check_consistency(&store.table).await;
            assert_eq!(found.expect("the table can be checked"), [], "{backend:?}");
        });
    }
}

async fn finish(mut tasks: JoinSet<()>) {
    while let Some(outcome) = tasks.join_next().await {
        outcome.expect("a task panicked");
    }
}

/// One task's part in a round: random operations, each recorded.
async fn play(store: &Store, keys: &[String], recorder: &Recorder, mut random: StdRng) {
    const OPERATIONS: usize = 12;
    for _ in 0..OPERATIONS {
        let key = &keys[random.random_range(0..keys.len())];
        let number = random.random_range(0..4);
        let operation = match random.random_range(0..10) {
            0..2 => Operation::Get,
            2 => Operation::Put(number),
            3 => Operation::Create(number),
            4..6 => Operation::Swap { expected: number, new: (number + 1) % 4 },
            6 => Operation::Add(1),
            7 => Operation::Delete,
            8 => {
                let called = recorder.now();
                let states = store.get_together(keys).await;
                let returned = recorder.now();
                for (key, state) in keys.iter().zip(states) {
                    let (operation, response) = (Operation::Get, Response::Before(state));
                    let event = Told { operation, response };
                    recorder.add(key, Event { called, returned, event }).await;
                }
                continue;
            }
            _ => {
                let called = recorder.now();
                store.add_together(keys, 1).await;
                let returned = recorder.now();
                for key in keys {
                    let (operation, response) = (Operation::Add(1), Response::Done);
                    let event = Told { operation, response };
                    recorder.add(key, Event { called, returned, event }).await;
                }
                continue;
            }
        };
        let called = recorder.now();
        let response = store.perform(key, operation).await;
        let returned = recorder.now();
        let event = Told { operation, response };
        recorder.add(key, Event { called, returned, event }).await;
    }
}

/// What happened to each item, with times from one clock that never shows the same time twice.
#[derive(Default)]
struct Recorder {
    clock: AtomicU64,
    histories: Mutex<BTreeMap<String, Vec<Event>>>,
}

impl Recorder {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    async fn add(&self, key: &str, event: Event) {
        self.histories.lock().await.entry(key.to_owned()).or_default().push(event);
    }
}

/// A table of items with one number each, and an index that every change of a number must maintain.
#[derive(Clone)]
struct Store {
    engine: Arc<Engine>,
    table: TableName,
    seed: Seed,
}

impl Store {
    async fn open(disk: &Disk, seed: Seed) -> Store {
        let clock = Arc::new(ManualClock::new(1_700_000_000_000));
        let engine = disk.yielding_engine(&clock, seed).await;
        let namespace = Namespace { account: "000000000000".into(), region: "local".into() };
        let table = TableName { namespace: Arc::new(namespace), name: "items".into() };
        engine.create_table(create_table(&table)).await.expect("a valid table");
        Store { engine, table, seed }
    }

    async fn put(&self, key: &str, number: i64) {
        self.perform(key, Operation::Put(number)).await;
    }

    async fn get(&self, key: &str) -> State {
        match self.perform(key, Operation::Get).await {
            Response::Before(state) => state,
            other => panic!("a read answered {other:?}"),
        }
    }

    async fn perform(&self, key: &str, operation: Operation) -> Response {
        let table = self.table.clone();
        let key_attributes = key_of(key);
        let put = |number: i64, condition: Option<Condition>| {
            let item = item_of(key, number);
            self.engine.put_item(PutItem { table: table.clone(), item, condition })
        };
        let outcome = match operation {
            Operation::Get => {
                let (projection, consistent) = (None, true);
                let get = GetItem { table, key: key_attributes, projection, consistent };
                let read = self.engine.get_item(&get).await.expect("a valid read");
                return Response::Before(number_of(read.item.as_ref()));
            }
            Operation::Put(number) => put(number, None).await,
            Operation::Create(number) => {
                put(number, Some(condition("attribute_not_exists(pk)", &[]))).await
            }
            Operation::Swap { expected, new } => {
                put(new, Some(condition("n = :expected", &[(":expected", expected)]))).await
            }
            Operation::Add(amount) => {
                let update = Some(add(amount));
                let command = UpdateItem { table, key: key_attributes, update, condition: None };
                let written = self.engine.update_item(command).await.expect("a valid update");
                return Response::After(number_of(written.new.as_ref()));
            }
            Operation::Delete => {
                let command = DeleteItem { table, key: key_attributes, condition: None };
                self.engine.delete_item(command).await
            }
        };
        match outcome {
            Ok(written) => Response::Before(number_of(written.old.as_ref())),
            Err(Error::ConditionFailed { item }) => Response::Refused(number_of(item.as_ref())),
            Err(error) => panic!("{operation:?} failed: {error:?}"),
        }
    }

    async fn get_together(&self, keys: &[String]) -> Vec<State> {
        let get = |key: &String| GetItem {
            table: self.table.clone(),
            key: key_of(key),
            projection: None,
            consistent: true,
        };
        let command = TransactGet { gets: keys.iter().map(get).collect() };
        let outcome = self.engine.transact_get(&command).await.expect("a valid transaction");
        outcome.items.iter().map(|item| number_of(item.as_ref())).collect()
    }

    async fn add_together(&self, keys: &[String], amount: i64) {
        let actions = keys.iter().map(|key| self.add_action(key, amount, None)).collect();
        let command = TransactWrite { token: None, actions };
        self.engine.transact_write(command).await.expect("a valid transaction");
    }

    /// Moves some money from one account to one or two others, or tries to create some from nothing
    /// in a transaction that must fail.
    async fn transfer(&self, accounts: &[String], random: &mut StdRng) {
        let amount = random.random_range(1..20);
        let first = random.random_range(0..accounts.len());
        let other = |offset: usize| &accounts[(first + offset) % accounts.len()];
        let enough = condition("n >= :amount", &[(":amount", amount * 2)]);
        let actions = match random.random_range(0..5) {
            0..2 => vec![
                self.add_action(other(0), -amount, Some(enough)),
                self.add_action(other(1), amount, None),
            ],
            2..4 => vec![
                self.add_action(other(0), -2 * amount, Some(enough)),
                self.add_action(other(1), amount, None),
                self.add_action(other(2), amount, None),
            ],
            _ => vec![
                self.add_action(other(0), amount, None),
                self.add_action(other(1), amount, None),
                TransactAction::Check {
                    table: self.table.clone(),
                    key: key_of(other(2)),
                    condition: condition("attribute_not_exists(pk)", &[]),
                },
            ],
        };
        let is_doomed = matches!(actions.last(), Some(TransactAction::Check { .. }));
        match self.engine.transact_write(TransactWrite { token: None, actions }).await {
            Ok(_) => assert!(!is_doomed, "a failed check stopped nothing"),
            Err(Error::TransactionCancelled(reasons)) => {
                let failed = |reason: &CancellationReason| {
                    matches!(reason, CancellationReason::ConditionFailed { .. })
                };
                assert_eq!(reasons.iter().filter(|reason| failed(reason)).count(), 1);
            }
            Err(error) => panic!("a transfer failed: {error:?}"),
        }
    }

    fn add_action(&self, key: &str, amount: i64, condition: Option<Condition>) -> TransactAction {
        TransactAction::Update(UpdateItem {
            table: self.table.clone(),
            key: key_of(key),
            update: Some(add(amount)),
            condition,
        })
    }

    async fn create_both(&self, items: [usize; 2], number: i64) -> bool {
        let create = |item: usize| {
            TransactAction::Put(PutItem {
                table: self.table.clone(),
                item: item_of(&format!("item-{item}"), number),
                condition: Some(condition("attribute_not_exists(pk)", &[])),
            })
        };
        let command = TransactWrite { token: None, actions: items.map(create).to_vec() };
        match self.engine.transact_write(command).await {
            Ok(_) => true,
            Err(Error::TransactionCancelled(_)) => false,
            Err(error) => panic!("a transaction failed: {error:?}"),
        }
    }
}

fn create_table(table: &TableName) -> CreateTable {
    let attribute = |name: &str, scalar_type| KeyAttribute { name: name.to_owned(), scalar_type };
    let (pk, n) = (attribute("pk", ScalarType::S), attribute("n", ScalarType::N));
    CreateTable {
        table: table.clone(),
        attribute_types: BTreeMap::from([
            ("pk".to_owned(), ScalarType::S),
            ("n".to_owned(), ScalarType::N),
        ]),
        keys: KeySchema { partition: vec![pk], sort: vec![] },
        local_indexes: vec![],
        global_indexes: vec![CreateIndex {
            name: "by_number".to_owned(),
            keys: KeySchema { partition: vec![n], sort: vec![] },
            projection: IndexProjection::All,
            throughput: ThroughputSettings::default(),
        }],
        billing_mode: BillingMode::PayPerRequest,
        throughput: ThroughputSettings::default(),
        stream: None,
        kms_key: None,
        table_class: None,
        deletion_protection: false,
        tags: BTreeMap::new(),
    }
}

fn key_of(key: &str) -> Attributes {
    Attributes::from([("pk".to_owned(), AttributeValue::S(key.to_owned()))])
}

fn item_of(key: &str, number: i64) -> Attributes {
    let mut item = key_of(key);
    item.insert("n".to_owned(), AttributeValue::N(Number::from(number)));
    item
}

fn number_of(item: Option<&EncodedItem>) -> State {
    let item = item?.as_item().decode();
    match &item["n"] {
        AttributeValue::N(number) => number.to_i64(),
        other => panic!("{other:?} is not a number"),
    }
}

fn condition(text: &str, values: &[(&str, i64)]) -> Condition {
    let values = values_of(values);
    let mut binder = Binder::new(None, (!values.is_empty()).then_some(&values));
    binder.condition(ExpressionKind::Condition, text).expect("a valid condition")
}

fn add(amount: i64) -> Update {
    let values = values_of(&[(":amount", amount)]);
    Binder::new(None, Some(&values)).update("ADD n :amount").expect("a valid update")
}

fn values_of(values: &[(&str, i64)]) -> BTreeMap<String, AttributeValue> {
    let value = |(name, number): &(&str, i64)| {
        ((*name).to_owned(), AttributeValue::N(Number::from(*number)))
    };
    values.iter().map(value).collect()
}
