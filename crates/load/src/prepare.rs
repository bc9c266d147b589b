//! Creates the table and its items.
//!
//! The generator puts a marker item into each table that it creates, which records what it loaded.
//! A table without the marker belongs to somebody else. A table with the marker is reused if it was
//! loaded with the same items and still has the keys, the indexes and the stream that it was
//! created with.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use tokio::task::{JoinSet, LocalSet};

use crate::exchange::{Answer, call, runtime};
use crate::http::{Call, Connection, Connector, Request};
use crate::workload::{BATCH_ITEMS, ItemWriter, Key, unprocessed};
use crate::{LoadError, Plan, Result, Shape};

const LOAD_CONNECTIONS_MAX: usize = 16;
const TABLE_STATE_TIMEOUT: Duration = Duration::from_secs(300);
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// With the pauses above, a few minutes of throttling.
const ATTEMPTS_MAX: u32 = 100;
/// Outside the key space of every workload.
const MARKER_KEY: &str = "zenobe-bench";
/// Raised whenever the layout of items changes, so that older tables are reloaded.
const LAYOUT: u64 = 1;

/// What [`prepare`] is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadProgress {
    /// The table of an earlier run holds other items and is deleted first.
    Replacing,
    Creating,
    Loading {
        done: u64,
        total: u64,
    },
    /// The table of an earlier run fits.
    Reused,
}

/// What [`prepare`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    pub reused: bool,
    pub items: u64,
    pub elapsed: Duration,
}

/// Creates the plan's table and loads its items, unless an earlier call has done so.
pub fn prepare(plan: &Plan, progress: &mut dyn FnMut(LoadProgress)) -> Result<Prepared> {
    plan.check()?;
    let start = Instant::now();
    let reused = LocalSet::new().block_on(&runtime()?, prepare_table(plan, progress))?;
    Ok(Prepared { reused, items: plan.items, elapsed: start.elapsed() })
}

/// Writes all items of a prepared table again, with other values if the plan has another seed.
pub fn rewrite(plan: &Plan, progress: &mut dyn FnMut(LoadProgress)) -> Result<()> {
    plan.check()?;
    LocalSet::new().block_on(&runtime()?, load(plan, progress))
}

/// Deletes the plan's table if the generator created it, and waits until it is gone.
pub fn drop_table(plan: &Plan) -> Result<()> {
    runtime()?.block_on(async {
        let mut table = Table::open(plan).await?;
        match table.state().await? {
            TableState::Absent => Ok(()),
            TableState::Ours { .. } => table.delete().await,
            TableState::Foreign => Err(LoadError::ForeignTable { table: plan.table.clone() }),
        }
    })
}

/// Returns whether an existing table was reused.
async fn prepare_table(plan: &Plan, progress: &mut dyn FnMut(LoadProgress)) -> Result<bool> {
    let mut table = Table::open(plan).await?;
    match table.state().await? {
        TableState::Ours { fits: true } => {
            progress(LoadProgress::Reused);
            return Ok(true);
        }
        TableState::Ours { fits: false } => {
            progress(LoadProgress::Replacing);
            table.delete().await?;
        }
        TableState::Absent => (),
        TableState::Foreign => return Err(LoadError::ForeignTable { table: plan.table.clone() }),
    }
    progress(LoadProgress::Creating);
    table.create().await?;
    table.write_marker(false).await?;
    load(plan, progress).await?;
    table.write_marker(true).await?;
    Ok(false)
}

struct Table<'a> {
    plan: &'a Plan,
    connection: Connection,
}

enum TableState {
    Absent,
    /// Created by the generator; it may or may not fit the plan.
    Ours {
        fits: bool,
    },
    Foreign,
}

impl Table<'_> {
    async fn open(plan: &Plan) -> Result<Table<'_>> {
        Ok(Table { plan, connection: Connector::new(&plan.target)?.open().await? })
    }

    async fn state(&mut self) -> Result<TableState> {
        if self.describe().await?.is_none() {
            return Ok(TableState::Absent);
        }
        self.wait_until_active().await?;
        let Some(item) = self.find_marker().await? else { return Ok(TableState::Foreign) };
        let table = self.describe().await?.unwrap_or_default();
        let wanted = create_request(&self.plan.table, self.plan.workload.shape());
        Ok(TableState::Ours {
            fits: item == self.marker(true) && Form::of(&table) == Form::of(&wanted),
        })
    }

    /// The marker item, if the table has one.
    async fn find_marker(&mut self) -> Result<Option<Value>> {
        let marker = self.marker(false);
        let mut key = json!({"pk": marker["pk"]});
        // The key of somebody else's table may have other names, which causes a
        // ValidationException.
        for sorted in [self.plan.workload.shape() == Shape::Sorted, true, false] {
            key.as_object_mut().expect("it is an object").remove("sk");
            if sorted {
                key["sk"] = json!({"S": MARKER_KEY});
            }
            let request = json!({"TableName": self.plan.table, "Key": key, "ConsistentRead": true});
            let answer = self.call("GetItem", &request).await?;
            if answer.is_success() {
                let mut answer = json_of("GetItem", &answer)?;
                let item = answer.get_mut("Item").map(Value::take);
                return Ok(item.filter(is_marker));
            }
            if answer.error_name() != "ValidationException" {
                return Err(refused("GetItem", &answer));
            }
        }
        Ok(None)
    }

    async fn create(&mut self) -> Result<()> {
        let request = create_request(&self.plan.table, self.plan.workload.shape());
        self.demand("CreateTable", &request).await?;
        self.wait_until_active().await
    }

    async fn delete(&mut self) -> Result<()> {
        self.demand("DeleteTable", &json!({"TableName": self.plan.table})).await?;
        let mut wait = Wait::new(&self.plan.table, "deleted");
        while self.describe().await?.is_some() {
            wait.pause().await?;
        }
        Ok(())
    }

    async fn wait_until_active(&mut self) -> Result<()> {
        let mut wait = Wait::new(&self.plan.table, "ACTIVE");
        loop {
            let table = self.describe().await?.unwrap_or_default();
            let indexes = table["GlobalSecondaryIndexes"].as_array().cloned().unwrap_or_default();
            let index_states = indexes.iter().map(|index| &index["IndexStatus"]);
            let mut states = std::iter::once(&table["TableStatus"]).chain(index_states);
            if states.all(|state| state == "ACTIVE") {
                return Ok(());
            }
            wait.pause().await?;
        }
    }

    async fn describe(&mut self) -> Result<Option<Value>> {
        let answer = self.call("DescribeTable", &json!({"TableName": self.plan.table})).await?;
        if !answer.is_success() {
            return match answer.error_name().as_str() {
                "ResourceNotFoundException" => Ok(None),
                _ => Err(refused("DescribeTable", &answer)),
            };
        }
        let mut described = json_of("DescribeTable", &answer)?;
        let table = described.get_mut("Table").map(Value::take).unwrap_or_default();
        // Without a status there would be nothing to wait for.
        if table["TableStatus"].is_string() {
            Ok(Some(table))
        } else {
            Err(unexpected("DescribeTable", &answer))
        }
    }

    async fn write_marker(&mut self, loaded: bool) -> Result<()> {
        let request = json!({"TableName": self.plan.table, "Item": self.marker(loaded)});
        self.demand("PutItem", &request).await
    }

    /// The marker item: who created the table, and with which items.
    fn marker(&self, loaded: bool) -> Value {
        let Plan { workload, items, item_bytes, .. } = self.plan;
        let mut marker = json!({
            "pk": {"S": MARKER_KEY},
            "layout": {"N": LAYOUT.to_string()},
            "shape": {"S": workload.shape().name()},
            "items": {"N": items.to_string()},
            "item_bytes": {"N": item_bytes.to_string()},
            "loaded": {"BOOL": loaded},
        });
        if workload.shape() == Shape::Sorted {
            marker["sk"] = json!({"S": MARKER_KEY});
        }
        marker
    }

    async fn demand(&mut self, operation: &str, request: &Value) -> Result<()> {
        let answer = self.call(operation, request).await?;
        if answer.is_success() { Ok(()) } else { Err(refused(operation, &answer)) }
    }

    async fn call(&mut self, operation: &str, request: &Value) -> Result<Answer> {
        let body = request.to_string();
        call(&mut self.connection, &self.plan.target, operation, body.as_bytes()).await
    }
}

/// Whether an item under the marker's key is a marker: somebody else's item may have the same key.
fn is_marker(item: &Value) -> bool {
    item["layout"]["N"].is_string()
        && item["shape"]["S"].is_string()
        && item["items"]["N"].is_string()
        && item["loaded"]["BOOL"].is_boolean()
}

/// Everything that decides whether a table fits, read from a request or from a description.
#[derive(Debug, PartialEq, Eq)]
struct Form {
    /// The names and types of key attributes.
    attributes: BTreeMap<String, String>,
    keys: Vec<(String, String)>,
    /// The keys and the projection of each index.
    indexes: BTreeMap<String, (Vec<(String, String)>, String)>,
    /// The view type, if there is a stream.
    stream: Option<String>,
}

impl Form {
    fn of(table: &Value) -> Form {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let keys = |schema: &Value| {
            let mut keys: Vec<_> = list(schema)
                .iter()
                .map(|key| (text(&key["KeyType"]), text(&key["AttributeName"])))
                .collect();
            keys.sort_unstable();
            keys
        };
        let attributes = list(&table["AttributeDefinitions"]);
        let indexes =
            ["GlobalSecondaryIndexes", "LocalSecondaryIndexes"].map(|kind| list(&table[kind]));
        let stream = &table["StreamSpecification"];
        Form {
            attributes: attributes
                .iter()
                .map(|each| (text(&each["AttributeName"]), text(&each["AttributeType"])))
                .collect(),
            keys: keys(&table["KeySchema"]),
            indexes: indexes
                .iter()
                .flatten()
                .map(|index| {
                    let projection = text(&index["Projection"]["ProjectionType"]);
                    (text(&index["IndexName"]), (keys(&index["KeySchema"]), projection))
                })
                .collect(),
            stream: (stream["StreamEnabled"] == true).then(|| text(&stream["StreamViewType"])),
        }
    }
}

fn create_request(table: &str, shape: Shape) -> Value {
    let attribute = |name: &str| json!({"AttributeName": name, "AttributeType": "S"});
    let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
    let mut request = json!({
        "TableName": table,
        "AttributeDefinitions": [attribute("pk")],
        "KeySchema": [key("pk", "HASH")],
        "BillingMode": "PAY_PER_REQUEST",
    });
    match shape {
        Shape::Plain => (),
        Shape::Sorted => {
            request["AttributeDefinitions"] = json!([attribute("pk"), attribute("sk")]);
            request["KeySchema"] = json!([key("pk", "HASH"), key("sk", "RANGE")]);
        }
        Shape::Indexed => {
            request["AttributeDefinitions"] = json!([attribute("pk"), attribute("category")]);
            request["GlobalSecondaryIndexes"] = json!([{
                "IndexName": "by-category",
                "KeySchema": [key("category", "HASH"), key("pk", "RANGE")],
                "Projection": {"ProjectionType": "ALL"},
            }]);
            request["StreamSpecification"] =
                json!({"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"});
        }
    }
    request
}

/// Growing pauses, up to a limit.
struct Wait<'a> {
    table: &'a str,
    wanted: &'static str,
    until: Instant,
    pause: Duration,
}

impl Wait<'_> {
    fn new<'a>(table: &'a str, wanted: &'static str) -> Wait<'a> {
        Wait { table, wanted, until: Instant::now() + TABLE_STATE_TIMEOUT, pause: PAUSE_FIRST }
    }

    async fn pause(&mut self) -> Result<()> {
        if Instant::now() >= self.until {
            return Err(LoadError::TableState {
                table: self.table.to_owned(),
                wanted: self.wanted,
                seconds: TABLE_STATE_TIMEOUT.as_secs(),
            });
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Ok(())
    }
}

/// Writes all items with BatchWriteItem on several connections.
async fn load(plan: &Plan, progress: &mut dyn FnMut(LoadProgress)) -> Result<()> {
    let connector = Connector::new(&plan.target)?;
    let next_batch = Rc::new(Cell::new(0));
    let done = Rc::new(Cell::new(0));
    let mut loaders = JoinSet::new();
    for number in 0..plan.connections.clamp(1, LOAD_CONNECTIONS_MAX) {
        let loader = Loader {
            items: plan.items,
            table: plan.table.clone(),
            writer: ItemWriter::new(plan.workload.shape(), plan.item_bytes, plan.seed),
            random: SmallRng::seed_from_u64(plan.seed ^ (number as u64 + 1)),
            connection: connector.open().await?,
            request: Request::new(&plan.target),
            next_batch: next_batch.clone(),
            done: done.clone(),
        };
        loaders.spawn_local(loader.load());
    }
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    loop {
        tokio::select! {
            joined = loaders.join_next() => match joined {
                Some(outcome) => outcome.map_err(|_| LoadError::Worker("a loader panicked"))??,
                None => break,
            },
            _ = ticks.tick() => {
                // The end is reported once, below.
                if done.get() < plan.items {
                    progress(LoadProgress::Loading { done: done.get(), total: plan.items });
                }
            }
        }
    }
    progress(LoadProgress::Loading { done: plan.items, total: plan.items });
    Ok(())
}

struct Loader {
    items: u64,
    table: String,
    writer: ItemWriter,
    random: SmallRng,
    connection: Connection,
    request: Request,
    next_batch: Rc<Cell<u64>>,
    done: Rc<Cell<u64>>,
}

impl Loader {
    async fn load(mut self) -> Result<()> {
        loop {
            let batch = self.next_batch.get();
            let first = batch * BATCH_ITEMS as u64;
            if first >= self.items {
                return Ok(());
            }
            self.next_batch.set(batch + 1);
            let end = self.items.min(first + BATCH_ITEMS as u64);
            self.render(first..end);
            self.send().await?;
            self.done.set(self.done.get() + (end - first));
        }
    }

    fn render(&mut self, numbers: std::ops::Range<u64>) {
        let body = self.request.begin(Call::BatchWriteItem);
        body.extend_from_slice(format!(r#"{{"RequestItems":{{"{}":["#, self.table).as_bytes());
        for (index, number) in numbers.enumerate() {
            body.extend_from_slice(if index == 0 { b"" } else { b"," });
            body.extend_from_slice(br#"{"PutRequest":{"Item":"#);
            self.writer.write_item(Key::Loaded(number), &mut self.random, body);
            body.extend_from_slice(b"}}");
        }
        body.extend_from_slice(b"]}}");
        self.request.finish();
    }

    /// Sends the batch until the server has processed all of it.
    async fn send(&mut self) -> Result<()> {
        let mut pause = PAUSE_FIRST;
        for _ in 0..ATTEMPTS_MAX {
            let exchanged = self.connection.exchange(self.request.bytes()).await;
            let received = exchanged.map_err(|failure| LoadError::Exchange {
                operation: "BatchWriteItem".to_owned(),
                error: failure.into_io(),
            })?;
            let body = self.connection.body(&received);
            if received.status == 200 {
                let Some(rest) = unprocessed(body) else { return Ok(()) };
                let body = self.request.begin(Call::BatchWriteItem);
                body.extend_from_slice(br#"{"RequestItems":"#);
                body.extend_from_slice(rest);
                body.push(b'}');
                self.request.finish();
            } else {
                let answer = Answer { status: received.status, body: body.to_vec() };
                if !answer.is_transient() {
                    return Err(refused("BatchWriteItem", &answer));
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        Err(LoadError::Refused {
            operation: "BatchWriteItem".to_owned(),
            name: "throttling".to_owned(),
            message: format!("a batch was not taken completely in {ATTEMPTS_MAX} attempts"),
        })
    }
}

fn json_of(operation: &str, answer: &Answer) -> Result<Value> {
    serde_json::from_slice(&answer.body).map_err(|_| unexpected(operation, answer))
}

fn unexpected(operation: &str, answer: &Answer) -> LoadError {
    LoadError::Unexpected {
        operation: operation.to_owned(),
        answer: String::from_utf8_lossy(&answer.body).chars().take(200).collect(),
    }
}

fn refused(operation: &str, answer: &Answer) -> LoadError {
    LoadError::Refused {
        operation: operation.to_owned(),
        name: answer.error_name(),
        message: answer.error_message(),
    }
}
