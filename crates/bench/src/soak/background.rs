//! Background work during the load: items that expire, and an index that is added and removed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use zenobe_load::Workload;

use crate::{Result, answers, load};

const EXPIRING_TABLE: &str = "expiring";
const BATCH_ITEMS: u64 = 25;
const BATCH_INTERVAL: Duration = Duration::from_millis(50);
const LIFETIME_S: u64 = 5;
/// How late the last item may be deleted.
const EXPIRY_PATIENCE: Duration = Duration::from_secs(120);
const INDEX: &str = "soak-index";
/// How long the backfill of the index may take under load.
const BACKFILL_PATIENCE: Duration = Duration::from_secs(600);
/// How often to poll the server's progress.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Writes items that expire soon, until it is told to finish.
pub struct Expiring {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    writer: JoinHandle<Result<u64>>,
}

impl Expiring {
    pub fn start(address: SocketAddr) -> Result<Expiring> {
        let table = json!({
            "TableName": EXPIRING_TABLE,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        });
        answers::call(address, "CreateTable", &table)?;
        let setting = json!({
            "TableName": EXPIRING_TABLE,
            "TimeToLiveSpecification": {"Enabled": true, "AttributeName": "expires"},
        });
        answers::call(address, "UpdateTimeToLive", &setting)?;
        let stop = Arc::new(AtomicBool::new(false));
        let writer = {
            let stop = stop.clone();
            std::thread::spawn(move || write_until(address, &stop))
        };
        Ok(Expiring { address, stop, writer })
    }

    /// Stops writing and waits until everything written has expired. Returns how many items that
    /// were, and what went wrong.
    pub fn finish(self) -> (u64, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        let written = match self.writer.join() {
            Ok(Ok(written)) => written,
            Ok(Err(error)) => return (0, vec![format!("items to expire: {error}")]),
            Err(_) => return (0, vec!["items to expire: the writer panicked".to_owned()]),
        };
        let end = Instant::now() + EXPIRY_PATIENCE;
        loop {
            match answers::item_count(self.address, EXPIRING_TABLE) {
                Ok(0) => return (written, Vec::new()),
                Ok(left) if Instant::now() > end => {
                    return (written - left, vec![format!("{left} items did not expire")]);
                }
                Ok(_) => std::thread::sleep(POLL_INTERVAL),
                Err(error) => return (0, vec![format!("items to expire: {error}")]),
            }
        }
    }
}

fn write_until(address: SocketAddr, stop: &AtomicBool) -> Result<u64> {
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        let expires = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() + LIFETIME_S;
        let put = |number: u64| {
            json!({"PutRequest": {"Item": {
                "pk": {"S": format!("session#{number:012}")},
                "expires": {"N": expires.to_string()},
                "fill": {"S": "x".repeat(300)},
            }}})
        };
        let puts: Vec<Value> = (written..written + BATCH_ITEMS).map(put).collect();
        answers::call(address, "BatchWriteItem", &json!({"RequestItems": {EXPIRING_TABLE: puts}}))?;
        written += BATCH_ITEMS;
        std::thread::sleep(BATCH_INTERVAL);
    }
    Ok(written)
}

/// An index that is added to the loaded table and removed later.
pub struct IndexChange {
    address: SocketAddr,
    table: String,
    adding: Option<JoinHandle<Result<Duration>>>,
    backfill: Option<Duration>,
    faults: Vec<String>,
}

impl IndexChange {
    pub fn new(address: SocketAddr) -> Result<IndexChange> {
        let table = load::plan(address, Workload::Put, 1, 1)?.table;
        Ok(IndexChange { address, table, adding: None, backfill: None, faults: Vec::new() })
    }

    /// Adds the index and watches its backfill without blocking the load.
    pub fn add(&mut self) {
        let (address, table) = (self.address, self.table.clone());
        self.adding = Some(std::thread::spawn(move || add_index(address, &table)));
    }

    pub fn remove(&mut self) {
        self.wait();
        let request = json!({
            "TableName": self.table,
            "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": INDEX}}],
        });
        if let Err(error) = answers::call(self.address, "UpdateTable", &request) {
            self.faults.push(format!("removing the index: {error}"));
        }
    }

    /// How long the backfill took.
    pub fn backfill(&self) -> Option<Duration> {
        self.backfill
    }

    pub fn faults(self) -> Vec<String> {
        self.faults
    }

    fn wait(&mut self) {
        match self.adding.take().map(JoinHandle::join) {
            None => {}
            Some(Ok(Ok(elapsed))) => self.backfill = Some(elapsed),
            Some(Ok(Err(error))) => self.faults.push(format!("adding an index: {error}")),
            Some(Err(_)) => self.faults.push("adding an index: panicked".to_owned()),
        }
    }
}

/// Returns when the index is active.
fn add_index(address: SocketAddr, table: &str) -> Result<Duration> {
    let start = Instant::now();
    let request = json!({
        "TableName": table,
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "version", "AttributeType": "N"},
        ],
        "GlobalSecondaryIndexUpdates": [{"Create": {
            "IndexName": INDEX,
            "KeySchema": [{"AttributeName": "version", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }}],
    });
    answers::call(address, "UpdateTable", &request)?;
    while start.elapsed() < BACKFILL_PATIENCE {
        let table = answers::describe(address, table)?;
        let status = table["GlobalSecondaryIndexes"][0]["IndexStatus"].as_str().unwrap_or_default();
        if status == "ACTIVE" {
            return Ok(start.elapsed());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Err(format!("it is not active after {} s", BACKFILL_PATIENCE.as_secs()).into())
}
