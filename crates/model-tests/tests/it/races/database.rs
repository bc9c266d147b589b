//! What callers race on: the API in this process on each store, or a server over HTTP.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::{JoinSet, block_in_place};
use zenobe_api::{Api, ApiOptions, Operation};
use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::TableName;
use zenobe_engine::schema::Namespace;
use zenobe_testing::{Client, Seed, ServerProcess};

use super::event::State;
use crate::backend::{Backend, Disk, Engines, runtime};

const TABLE: &str = "items";
const INDEX: &str = "by_number";

/// A table of items with one number each, and an index that every change of a number must maintain.
#[derive(Clone)]
pub struct Database {
    place: Arc<Place>,
    pub seed: Seed,
}

enum Place {
    Here { engines: Engines, namespace: Arc<Namespace>, _disk: Disk },
    Server(ServerProcess),
}

/// Runs a test on each kind of database, and checks the table afterwards.
pub fn on_every_database(test: &str, run: impl AsyncFn(Database)) {
    let seed = Seed::announce(test);
    let stores = Backend::ALL.map(Some);
    for store in stores.into_iter().chain([None]) {
        eprintln!("{test}: {}", store.map_or("a server".to_owned(), |store| format!("{store:?}")));
        runtime(true).block_on(async {
            let place = match store {
                Some(store) => Place::here(store, seed).await,
                None => Place::Server(ServerProcess::fresh("races")),
            };
            let database = Database { place: Arc::new(place), seed };
            database.caller().expect(Operation::CreateTable, create_table()).await;
            run(database.clone()).await;
            database.check_consistency().await;
        });
    }
}

impl Place {
    async fn here(backend: Backend, seed: Seed) -> Place {
        let disk = Disk::new(backend);
        let clock = Arc::new(ManualClock::new(1_700_000_000_000));
        let engines = disk.yielding_engines(&clock, seed).await;
        let namespace = Namespace { account: "000000000000".into(), region: "us-east-1".into() };
        Place::Here { engines, namespace: Arc::new(namespace), _disk: disk }
    }
}

impl Database {
    /// One of many callers. Over HTTP each has its own connection.
    pub fn caller(&self) -> Caller {
        match &*self.place {
            Place::Here { engines, namespace, .. } => {
                let api = Api::new(Arc::clone(engines.any()), ApiOptions::default());
                Caller::Here { api: Arc::new(api), namespace: Arc::clone(namespace) }
            }
            Place::Server(server) => Caller::Http(server.client()),
        }
    }

    /// Runs as many callers as there are numbers, side by side. Returns the result of each.
    pub async fn race<T: Send + 'static, F>(
        &self,
        callers: std::ops::Range<usize>,
        play: impl Fn(usize, Caller) -> F,
    ) -> Vec<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        for number in callers {
            tasks.spawn(play(number, self.caller()));
        }
        tasks.join_all().await
    }

    /// Checks that the index agrees with the table, and that the engine finds no inconsistency.
    async fn check_consistency(&self) {
        let mut caller = self.caller();
        let table = caller.scan(json!({"TableName": TABLE, "ConsistentRead": true})).await;
        let index = caller.scan(json!({"TableName": TABLE, "IndexName": INDEX})).await;
        let sorted = |items: &[Value]| items.iter().map(Value::to_string).collect::<BTreeSet<_>>();
        assert_eq!(sorted(&table), sorted(&index));
        assert_eq!(table.len(), index.len(), "an entry is there twice");
        if let Place::Here { engines, namespace, .. } = &*self.place {
            let table = TableName { namespace: Arc::clone(namespace), name: TABLE.to_owned() };
            let found = engines.any().check_consistency(&table).await;
            assert_eq!(found.expect("the table can be checked"), []);
        }
    }
}

pub enum Caller {
    Here { api: Arc<Api>, namespace: Arc<Namespace> },
    Http(Client),
}

impl Caller {
    /// The response, or the name of the exception and its message.
    pub async fn call(
        &mut self,
        operation: Operation,
        body: Value,
    ) -> Result<Value, (String, Value)> {
        let (status, body) = match self {
            Caller::Here { api, namespace } => {
                let body = body.to_string();
                let response = api.handle(operation, namespace, body.as_bytes()).await;
                let body = serde_json::from_slice(&response.body).expect("answers are JSON");
                (response.status, body)
            }
            Caller::Http(client) => block_in_place(|| {
                let reply = client.call(operation.name(), &body).expect("the server answers");
                (reply.status, reply.body)
            }),
        };
        match status {
            200 => Ok(body),
            _ => {
                let name = body["__type"].as_str().expect("an exception has a name");
                Err((name.rsplit('#').next().unwrap_or(name).to_owned(), body))
            }
        }
    }

    /// Calls an operation that must succeed.
    pub async fn expect(&mut self, operation: Operation, body: Value) -> Value {
        let answer = self.call(operation, body).await;
        answer.unwrap_or_else(|error| panic!("{}: {error:?}", operation.name()))
    }

    async fn scan(&mut self, request: Value) -> Vec<Value> {
        let mut page = self.expect(Operation::Scan, request).await;
        assert_eq!(page["LastEvaluatedKey"], Value::Null, "these tables are small");
        let Value::Array(items) = page["Items"].take() else { panic!("no items: {page}") };
        items
    }
}

fn create_table() -> Value {
    json!({
        "TableName": TABLE,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "n", "AttributeType": "N"},
        ],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "GlobalSecondaryIndexes": [{
            "IndexName": INDEX,
            "KeySchema": [{"AttributeName": "n", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }],
    })
}

pub fn key(name: &str) -> Value {
    json!({"pk": {"S": name}})
}

pub fn item(name: &str, number: i64) -> Value {
    json!({"pk": {"S": name}, "n": {"N": number.to_string()}})
}

/// The number of an item, if there is one.
pub fn number(item: &Value) -> State {
    let text = item.get("n")?["N"].as_str().unwrap_or_else(|| panic!("no number in {item}"));
    Some(text.parse().expect("a small number"))
}

/// A request about the table.
pub fn request(mut members: Value) -> Value {
    members["TableName"] = json!(TABLE);
    members
}
