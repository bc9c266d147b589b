//! Tasks on several threads against one engine: no write is lost or happens twice, and every table
//! is consistent afterwards.

use std::sync::Arc;

use tokio::task::JoinSet;
use zenobe_engine::Engine;
use zenobe_engine::command::*;
use zenobe_engine::error::{Error, Result};
use zenobe_engine::schema::*;
use zenobe_expression::{Binder, Condition, ExpressionKind, Update};
use zenobe_value::{AttributeValue, Attributes, Number};

use crate::support::Fixture;
use crate::support::notation::parse_item;

const TASKS: usize = 8;
const ROUNDS: usize = 200;

#[test]
fn increments_of_one_counter_all_count() {
    run(async |fixture| {
        let table = create(&fixture, "t", &[]).await;
        let increment = update("ADD n :one", &[(":one", 1)]);
        race(&fixture, move |engine, _| {
            let command = UpdateItem {
                table: table.clone(),
                key: parse_item(r#"{"pk": "counter"}"#),
                update: Some(increment.clone()),
                condition: None,
            };
            async move { engine.update_item(command).await.map(drop) }
        })
        .await;
        assert_eq!(number(&fixture, "counter", "n").await, (TASKS * ROUNDS) as i64);
    });
}

#[test]
fn conditional_increments_retry_until_they_count() {
    run(async |fixture| {
        let table = create(&fixture, "t", &[]).await;
        put(&fixture, r#"{"pk": "counter", "n": 0}"#).await;
        race(&fixture, move |engine, _| {
            let table = table.clone();
            async move { increment_if_unchanged(&engine, &table).await }
        })
        .await;
        assert_eq!(number(&fixture, "counter", "n").await, (TASKS * ROUNDS) as i64);
    });
}

#[test]
fn of_creators_of_one_item_exactly_one_wins() {
    run(async |fixture| {
        let table = create(&fixture, "t", &["by_owner"]).await;
        let won = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let wins = Arc::clone(&won);
        race(&fixture, move |engine, round| {
            let (table, wins) = (table.clone(), Arc::clone(&wins));
            let item = parse_item(&format!(r#"{{"pk": "{round}", "g": "x"}}"#));
            let condition = Some(condition("attribute_not_exists(pk)", &[]));
            async move {
                match engine.put_item(PutItem { table, item, condition }).await {
                    Ok(_) => {
                        wins.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        Ok(())
                    }
                    Err(Error::ConditionFailed { item: Some(_) }) => Ok(()),
                    Err(error) => Err(error),
                }
            }
        })
        .await;
        assert_eq!(won.load(std::sync::atomic::Ordering::SeqCst), ROUNDS);
    });
}

#[test]
fn transfers_keep_the_sum_in_every_snapshot() {
    const ACCOUNTS: usize = 5;
    const START: i64 = 100;
    run(async |fixture| {
        let table = create(&fixture, "t", &[]).await;
        for account in 0..ACCOUNTS {
            put(&fixture, &format!(r#"{{"pk": "{account}", "n": {START}}}"#)).await;
        }
        race(&fixture, move |engine, round| {
            let table = table.clone();
            async move {
                transfer(&engine, &table, round % ACCOUNTS, (round * 3 + 1) % ACCOUNTS).await?;
                let sum = sum(&engine, &table, ACCOUNTS).await?;
                assert_eq!(sum, START * ACCOUNTS as i64);
                Ok(())
            }
        })
        .await;
    });
}

#[test]
fn a_token_is_good_for_one_transaction() {
    run(async |fixture| {
        let table = create(&fixture, "t", &[]).await;
        let namespace = Arc::clone(&fixture.namespace);
        race(&fixture, move |engine, round| {
            let increment = UpdateItem {
                table: table.clone(),
                key: parse_item(r#"{"pk": "counter"}"#),
                update: Some(update("ADD n :one", &[(":one", 1)])),
                condition: None,
            };
            let token = TransactionToken {
                namespace: Arc::clone(&namespace),
                token: format!("round {round}"),
                parameters_digest: [round as u8; 16],
            };
            let actions = vec![TransactAction::Update(increment)];
            async move {
                engine.transact_write(TransactWrite { token: Some(token), actions }).await.map(drop)
            }
        })
        .await;
        assert_eq!(number(&fixture, "counter", "n").await, ROUNDS as i64);
    });
}

#[test]
fn an_index_that_joins_while_items_change_is_complete() {
    run(async |fixture| {
        let table = create(&fixture, "t", &[]).await;
        for item in 0..300 {
            put(&fixture, &format!(r#"{{"pk": "{item}", "g": "old"}}"#)).await;
        }
        let engine = Arc::clone(&fixture.engine);
        let name = table.clone();
        let indexing = tokio::spawn(async move {
            for index in ["first", "second"] {
                engine.update_table(add_index(&name, index)).await?;
                engine.run_pending_work().await?;
            }
            Ok::<_, Error>(())
        });
        race(&fixture, move |engine, round| {
            let table = table.clone();
            let key = parse_item(&format!(r#"{{"pk": "{}"}}"#, round % 300));
            let mut item = key.clone();
            item.insert("g".into(), AttributeValue::S(format!("new {}", round % 3)));
            async move {
                match round % 4 {
                    0 => engine
                        .delete_item(DeleteItem { table, key, condition: None })
                        .await
                        .map(drop),
                    1 => {
                        let put = PutItem { table, item, condition: None };
                        let actions = vec![TransactAction::Put(put)];
                        let transaction = TransactWrite { token: None, actions };
                        engine.transact_write(transaction).await.map(drop)
                    }
                    _ => engine.put_item(PutItem { table, item, condition: None }).await.map(drop),
                }
            }
        })
        .await;
        indexing.await.expect("no panic").expect("both indexes join");
        let described = fixture.engine.describe_table(&fixture.name("t")).await.expect("a table");
        assert_eq!(described.index_statistics["first"], described.index_statistics["second"]);
        assert_eq!(described.index_statistics["first"].item_count, described.statistics.item_count);
    });
}

/// Runs a test on four threads and checks the table `t` afterwards.
fn run(test: impl AsyncFnOnce(Arc<Fixture>)) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async {
        let fixture = Arc::new(Fixture::new().await);
        test(Arc::clone(&fixture)).await;
        let found = fixture.engine.check_consistency(&fixture.name("t")).await;
        assert_eq!(found.expect("a readable table"), []);
    });
}

/// Runs every round on each of several tasks, which must all succeed.
async fn race<W>(
    fixture: &Fixture,
    work: impl Fn(Arc<Engine>, usize) -> W + Clone + Send + Sync + 'static,
) where
    W: Future<Output = Result<()>> + Send,
{
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (engine, work) = (Arc::clone(&fixture.engine), work.clone());
        tasks.spawn(async move {
            for round in 0..ROUNDS {
                work(Arc::clone(&engine), round).await.expect("a round succeeds");
                tokio::task::yield_now().await;
            }
        });
    }
    while let Some(finished) = tasks.join_next().await {
        finished.expect("no task panics");
    }
}

async fn increment_if_unchanged(engine: &Engine, table: &TableName) -> Result<()> {
    loop {
        let key = parse_item(r#"{"pk": "counter"}"#);
        let get =
            GetItem { table: table.clone(), key: key.clone(), projection: None, consistent: true };
        let item = engine.get_item(&get).await?.item.expect("the counter exists");
        let seen = as_i64(&item.as_item().decode()["n"]);
        let command = UpdateItem {
            table: table.clone(),
            key,
            update: Some(update("SET n = :next", &[(":next", seen + 1)])),
            condition: Some(condition("n = :seen", &[(":seen", seen)])),
        };
        match engine.update_item(command).await {
            Ok(_) => return Ok(()),
            Err(Error::ConditionFailed { .. }) => tokio::task::yield_now().await,
            Err(error) => return Err(error),
        }
    }
}

async fn transfer(engine: &Engine, table: &TableName, from: usize, to: usize) -> Result<()> {
    if from == to {
        return Ok(());
    }
    let step = |account: usize, text: &str, limit: Option<&str>| {
        TransactAction::Update(UpdateItem {
            table: table.clone(),
            key: parse_item(&format!(r#"{{"pk": "{account}"}}"#)),
            update: Some(update(text, &[(":amount", 7)])),
            condition: limit.map(|text| condition(text, &[(":amount", 7)])),
        })
    };
    let actions = vec![
        step(from, "SET n = n - :amount", Some("n >= :amount")),
        step(to, "SET n = n + :amount", None),
    ];
    match engine.transact_write(TransactWrite { token: None, actions }).await {
        Ok(_) | Err(Error::TransactionCancelled(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn sum(engine: &Engine, table: &TableName, accounts: usize) -> Result<i64> {
    let gets = (0..accounts).map(|account| GetItem {
        table: table.clone(),
        key: parse_item(&format!(r#"{{"pk": "{account}"}}"#)),
        projection: None,
        consistent: true,
    });
    let outcome = engine.transact_get(&TransactGet { gets: gets.collect() }).await?;
    let balance = |item: Option<zenobe_value::EncodedItem>| {
        as_i64(&item.expect("accounts stay").as_item().decode()["n"])
    };
    Ok(outcome.items.into_iter().map(balance).sum())
}

async fn create(fixture: &Fixture, name: &str, indexes: &[&str]) -> TableName {
    let table = fixture.name(name);
    let key = |name: &str| KeyAttribute { name: name.into(), scalar_type: ScalarType::S };
    let index = |name: &&str| CreateIndex {
        name: (*name).into(),
        keys: KeySchema { partition: vec![key("g")], sort: Vec::new() },
        projection: IndexProjection::All,
        throughput: ThroughputSettings::default(),
    };
    let mut attribute_types = std::collections::BTreeMap::from([("pk".into(), ScalarType::S)]);
    if !indexes.is_empty() {
        attribute_types.insert("g".into(), ScalarType::S);
    }
    let command = CreateTable {
        table: table.clone(),
        attribute_types,
        keys: KeySchema { partition: vec![key("pk")], sort: Vec::new() },
        local_indexes: Vec::new(),
        global_indexes: indexes.iter().map(index).collect(),
        billing_mode: BillingMode::PayPerRequest,
        throughput: ThroughputSettings::default(),
        stream: None,
        kms_key: None,
        table_class: None,
        deletion_protection: false,
        tags: std::collections::BTreeMap::new(),
    };
    fixture.engine.create_table(command).await.expect("a table is created");
    table
}

fn add_index(table: &TableName, name: &str) -> UpdateTable {
    let types = [("pk".to_owned(), ScalarType::S), ("g".to_owned(), ScalarType::S)];
    let index = UnresolvedIndex {
        name: name.into(),
        partition: vec!["g".into()],
        sort: Vec::new(),
        projection: IndexProjection::KeysOnly,
        throughput: ThroughputSettings::default(),
    };
    UpdateTable {
        table: table.clone(),
        attribute_types: Some(types.into()),
        billing_mode: None,
        throughput: ThroughputSettings::default(),
        stream: None,
        encryption: None,
        table_class: None,
        deletion_protection: None,
        index_changes: vec![IndexChange::Create(Box::new(index))],
    }
}

async fn put(fixture: &Fixture, item: &str) {
    let command = PutItem { table: fixture.name("t"), item: parse_item(item), condition: None };
    fixture.engine.put_item(command).await.expect("an item is put");
}

async fn number(fixture: &Fixture, key: &str, attribute: &str) -> i64 {
    let get = GetItem {
        table: fixture.name("t"),
        key: Attributes::from([("pk".into(), AttributeValue::S(key.into()))]),
        projection: None,
        consistent: true,
    };
    let item = fixture.engine.get_item(&get).await.expect("a read").item.expect("an item");
    as_i64(&item.as_item().decode()[attribute])
}

fn as_i64(value: &AttributeValue) -> i64 {
    match value {
        AttributeValue::N(number) => number.to_i64().expect("a small number"),
        other => panic!("no number: {other:?}"),
    }
}

fn update(text: &str, values: &[(&str, i64)]) -> Update {
    Binder::new(None, Some(&bound(values))).update(text).expect("a valid update")
}

fn condition(text: &str, values: &[(&str, i64)]) -> Condition {
    let values = bound(values);
    let mut binder = Binder::new(None, Some(&values));
    binder.condition(ExpressionKind::Condition, text).expect("a valid condition")
}

fn bound(values: &[(&str, i64)]) -> Attributes {
    values
        .iter()
        .map(|(name, value)| ((*name).into(), AttributeValue::N(Number::from(*value))))
        .collect()
}
