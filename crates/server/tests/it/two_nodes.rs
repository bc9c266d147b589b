//! Triggers of two nodes on one store: one of them delivers, and the other continues where it
//! stopped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{FutureExt, pending};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use zenobe::triggers::{TriggerDefinition, TriggerError, Triggers};
use zenobe::{Namespace, Operation};
use zenobe_api::{Api, ApiOptions};
use zenobe_engine::{Engine, EngineOptions, keyspace};
use zenobe_store::Store;
use zenobe_store::intercepting::InterceptingStore;
use zenobe_store::memory::MemoryStore;

use crate::endpoint::{Answer, TestEndpoint};

struct Node {
    engine: Arc<Engine>,
    api: Api,
    triggers: Arc<Triggers>,
    background: JoinHandle<()>,
    namespace: Arc<Namespace>,
}

impl Node {
    async fn start(store: &Arc<dyn Store>) -> Node {
        let lease_period = Duration::from_secs(2);
        let options = EngineOptions { lease_period, ..EngineOptions::default() };
        let engine = Engine::open(store.clone(), options).await.unwrap();
        let background = tokio::spawn(engine.clone().run_background());
        let api = Arc::new(Api::new(engine.clone(), ApiOptions::default()));
        let namespace =
            Arc::new(Namespace { account: "000000000000".into(), region: "us-east-1".into() });
        let triggers = Triggers::start(engine.clone(), api, &namespace, Vec::new(), None);
        let triggers = triggers.await.unwrap();
        let api = Api::new(engine.clone(), ApiOptions::default());
        Node { engine, api, triggers, background, namespace }
    }

    async fn call(&self, operation: Operation, body: Value) {
        let body = body.to_string();
        let response = self.api.handle(operation, &self.namespace, body.as_bytes()).await;
        assert_eq!(response.status, 200, "{:?}", response.body);
    }

    async fn put(&self, n: u64) {
        let item = json!({"pk": {"S": "a"}, "n": {"N": n.to_string()}});
        self.call(Operation::PutItem, json!({"TableName": "events", "Item": item})).await;
    }

    /// Whether this node works on the trigger's shard.
    async fn delivers(&self) -> bool {
        let leases = self.engine.leases().await.unwrap();
        let shard = leases.into_iter().find(|lease| lease.work.contains("/shardId-"));
        shard.is_some_and(|lease| lease.node == self.engine.node_id())
    }

    async fn knows_the_trigger(&self) -> bool {
        match self.triggers.status(&self.namespace, "shared").await {
            Ok(_) => true,
            Err(TriggerError::NotFound(_)) => false,
            Err(error) => panic!("{error}"),
        }
    }
}

async fn wait_until(what: &str, is_so: impl AsyncFn() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < Duration::from_secs(60), "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What the endpoint received, each number once: deliveries may be repeated where another node
/// takes over.
fn delivered(endpoint: &TestEndpoint) -> Vec<u64> {
    let mut numbers = Vec::new();
    for number in endpoint.numbers_of("a") {
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_a_node_stops_the_other_goes_on_delivering() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::shared());
    let endpoint = TestEndpoint::start(|_, _| Answer::Ok);
    let [one, other] = [Node::start(&store).await, Node::start(&store).await];
    let table = json!({
        "TableName": "events",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_IMAGE"},
    });
    one.call(Operation::CreateTable, table).await;
    let definition = json!({"name": "shared", "table": "events", "url": endpoint.url()});
    let definition = TriggerDefinition::parse(&definition).unwrap();
    one.triggers.add(&one.namespace, definition).await.unwrap();
    wait_until("the other node runs it, too", async || other.knows_the_trigger().await).await;

    for n in 1..=40 {
        if n % 2 == 0 { one.put(n).await } else { other.put(n).await }
    }
    wait_until("both nodes' records arrive", async || delivered(&endpoint).len() == 40).await;
    assert!(one.delivers().await != other.delivers().await, "one node has the shard");

    // A node that renews no lease counts as dead.
    let (dead, living) = if one.delivers().await { (one, other) } else { (other, one) };
    dead.background.abort();
    for n in 41..=80 {
        living.put(n).await;
    }
    wait_until("the other node takes over", async || living.delivers().await).await;
    for n in 81..=90 {
        living.put(n).await;
    }
    wait_until("everything arrives", async || delivered(&endpoint).len() == 90).await;
    assert_eq!(delivered(&endpoint), (1..=90).collect::<Vec<u64>>());

    living.triggers.remove(&living.namespace, "shared").await.unwrap();
    wait_until("the other node stops it", async || !dead.knows_the_trigger().await).await;
    assert_eq!(living.engine.consumers().await.unwrap(), []);
    for node in [dead, living] {
        node.triggers.stop().await;
    }
}

/// The store may be away for long. A server that is told to stop does not wait for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_does_not_wait_for_a_change_that_hangs() {
    let hanging = Arc::new(InterceptingStore::new(Arc::new(MemoryStore::shared())));
    let arrived = Arc::new(Semaphore::new(0));
    hanging.intercept({
        let arrived = Arc::clone(&arrived);
        move |set| {
            let id = Namespace { account: "000000000000".into(), region: "us-east-1".into() };
            set.keys.contains(&keyspace::consumer_row(&id, "shared")).then(|| {
                arrived.add_permits(1);
                pending().boxed()
            })
        }
    });
    let store: Arc<dyn Store> = hanging;
    let node = Node::start(&store).await;
    let (triggers, namespace) = (node.triggers.clone(), node.namespace.clone());
    let definition = json!({"name": "shared", "table": "events", "url": "http://127.0.0.1:1/"});
    let definition = TriggerDefinition::parse(&definition).unwrap();
    let adding = tokio::spawn(async move { triggers.add(&namespace, definition).await });
    arrived.acquire().await.unwrap().forget();
    let stopped = tokio::time::timeout(Duration::from_secs(60), node.triggers.stop()).await;
    assert!(stopped.is_ok(), "the stop hangs with the change");
    assert!(!adding.is_finished());
    adding.abort();
}
