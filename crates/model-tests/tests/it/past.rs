//! Point-in-time recovery and backups against a model that keeps every past state of a table.
//!
//! Random writes of every kind change a small table while its clock moves on, by moments and by hours. At the end of each
//! second the model notes what the table holds. Reads as of random seconds of the last day, and restores to them, must show
//! exactly that, on every store, after crashes and restarts, while older history is trimmed and items expire, and whatever
//! has happened to the table since. Backups, made at any moment and with or without recovery, must restore what the table
//! held then.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use zenobe_api::{Api, ApiOptions, Operation};
use zenobe_engine::Limits;
use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::TableName;
use zenobe_engine::schema::Namespace;
use zenobe_testing::Seed;

use crate::backend::{Backend, Disk, Engines, runtime};

const STEPS: usize = 260;
const PARTITIONS: usize = 5;
const SORTS: usize = 4;
const START_MS: u64 = 1_700_000_000_000;
const HOUR_MS: u64 = 60 * 60 * 1_000;
/// The table's period, in seconds.
const PERIOD: u64 = 24 * 60 * 60;
/// When much time passes at once, the model notes this many seconds at its beginning and at its end.
const NOTED: u64 = 5;

#[test]
fn every_second_can_be_read_and_restored() {
    let seed = Seed::announce("every_second_can_be_read_and_restored");
    for backend in Backend::ALL {
        eprintln!("{backend:?}");
        runtime(false).block_on(async {
            let mut history = History::new(backend, seed).await;
            for _ in 0..STEPS {
                history.step().await;
            }
            history.end().await;
        });
    }
}

/// What a table held, by the JSON of each item's key.
type State = BTreeMap<String, Value>;

struct History {
    disk: Disk,
    engines: Option<Engines>,
    clock: Arc<ManualClock>,
    namespace: Arc<Namespace>,
    random: StdRng,
    /// The state at the end of each second that is over.
    past: BTreeMap<u64, State>,
    /// The first second that can be read.
    first: u64,
    restored: usize,
    /// The ARNs of backups, and what the table held when they were made.
    backups: Vec<(Value, State)>,
}

impl History {
    async fn new(backend: Backend, seed: Seed) -> History {
        let disk = Disk::new(backend);
        let clock = Arc::new(ManualClock::new(START_MS));
        let engines = disk.engines(&clock, Limits::default()).await;
        let namespace = Namespace { account: "000000000000".into(), region: "us-east-1".into() };
        let mut history = History {
            disk,
            engines: Some(engines),
            clock,
            namespace: Arc::new(namespace),
            random: StdRng::seed_from_u64(seed.value()),
            past: BTreeMap::new(),
            first: START_MS / 1_000,
            restored: 0,
            backups: Vec::new(),
        };
        history.call(Operation::CreateTable, create_table()).await;
        // What is there before recovery is switched on counts as well.
        history.write().await;
        history.write().await;
        let ttl = json!({"AttributeName": "expires", "Enabled": true});
        let ttl = json!({"TableName": "all", "TimeToLiveSpecification": ttl});
        history.call(Operation::UpdateTimeToLive, ttl).await;
        history.switch(true).await;
        history
    }

    fn api(&self) -> Api {
        let engines = self.engines.as_ref().expect("the store is open");
        Api::new(Arc::clone(engines.any()), ApiOptions::default())
    }

    async fn call(&self, operation: Operation, body: Value) -> Value {
        answer(&self.api(), operation, &self.namespace, &body).await
    }

    async fn call_as_of(&self, second: u64, operation: Operation, body: Value) -> Value {
        let api = self.api().as_of(operation, &second.to_string());
        let api = api.unwrap_or_else(|refusal| panic!("{:?}", refusal.body));
        answer(&api, operation, &self.namespace, &body).await
    }

    async fn step(&mut self) {
        match self.random.random_range(0..23) {
            0..=8 => self.write().await,
            9..=11 => self.pass_time().await,
            12..=15 => self.read_past().await,
            16 => self.work().await,
            17 => self.reopen().await,
            18 => self.restore().await,
            20 => self.back_up().await,
            21 => self.restore_backup().await,
            22 if self.random.random_bool(0.3) => self.delete_backup().await,
            _ if self.random.random_bool(0.1) => {
                self.switch(false).await;
                // A backup of a table that has no history yet.
                self.back_up().await;
                self.write().await;
                self.switch(true).await;
            }
            _ => {}
        }
    }

    async fn switch(&mut self, is_on: bool) {
        let mut specification = json!({"PointInTimeRecoveryEnabled": is_on});
        if is_on {
            specification["RecoveryPeriodInDays"] = 1.into();
        }
        let body = json!({"TableName": "all", "PointInTimeRecoverySpecification": specification});
        self.call(Operation::UpdateContinuousBackups, body).await;
        self.first = self.second();
        self.past.clear();
    }

    fn second(&self) -> u64 {
        use zenobe_engine::clock::Clock;
        self.clock.now_ms() / 1_000
    }

    /// Moves the clock. Whenever a second ends, notes the table's state.
    async fn pass_time(&mut self) {
        let state = self.state("all").await;
        let before = self.second();
        match self.random.random_bool(0.25) {
            true => self.clock.advance_ms(self.random.random_range(HOUR_MS..10 * HOUR_MS)),
            false => self.clock.advance_ms(self.random.random_range(1..2_500)),
        }
        let after = self.second();
        for second in (before..after.min(before + NOTED)).chain(before.max(after - NOTED)..after) {
            self.past.insert(second, state.clone());
        }
        self.first = self.first.max(after - PERIOD);
    }

    async fn state(&self, table: &str) -> State {
        by_key(self.scan(table, None, None).await)
    }

    async fn scan(&self, table: &str, as_of: Option<u64>, limit: Option<usize>) -> Vec<Value> {
        let mut items = Vec::new();
        let mut body = json!({"TableName": table});
        if let Some(limit) = limit {
            body["Limit"] = limit.into();
        }
        loop {
            let mut page = match as_of {
                None => self.call(Operation::Scan, body.clone()).await,
                Some(second) => self.call_as_of(second, Operation::Scan, body.clone()).await,
            };
            items.append(page["Items"].as_array_mut().expect("items"));
            match page["LastEvaluatedKey"].take() {
                Value::Null => return items,
                last => body["ExclusiveStartKey"] = last,
            }
        }
    }

    /// A random key; its number of digits varies.
    fn key(&mut self) -> Value {
        let partition = self.random.random_range(0..PARTITIONS);
        let sort = self.random.random_range(0..SORTS) * 7;
        json!({"pk": {"S": "p".repeat(partition + 1)}, "sk": {"N": sort.to_string()}})
    }

    fn item(&mut self) -> Value {
        let mut item = self.key();
        item["v"] = json!({"N": self.random.random_range(0..9).to_string()});
        if self.random.random_bool(0.2) {
            let expires = self.second() + self.random.random_range(0..6);
            item["expires"] = json!({"N": expires.to_string()});
        }
        item
    }

    async fn write(&mut self) {
        match self.random.random_range(0..8) {
            0..=2 => {
                let item = self.item();
                self.call(Operation::PutItem, json!({"TableName": "all", "Item": item})).await;
            }
            3 => {
                let key = self.key();
                self.call(Operation::DeleteItem, json!({"TableName": "all", "Key": key})).await;
            }
            4 => {
                let values = json!({":one": {"N": "1"}});
                let body = json!({
                    "TableName": "all", "Key": self.key(), "UpdateExpression": "ADD v :one",
                    "ExpressionAttributeValues": values,
                });
                self.call(Operation::UpdateItem, body).await;
            }
            5 => {
                let (put, key) = (self.item(), self.key());
                let mut requests = vec![json!({"PutRequest": {"Item": put}})];
                if key_of(&put) != key_of(&key) {
                    requests.push(json!({"DeleteRequest": {"Key": key}}));
                }
                let body = json!({"RequestItems": {"all": requests}});
                self.call(Operation::BatchWriteItem, body).await;
            }
            6 => {
                let (put, key) = (self.item(), self.key());
                let mut actions = vec![json!({"Put": {"TableName": "all", "Item": put}})];
                if key_of(&put) != key_of(&key) {
                    actions.push(json!({"Delete": {"TableName": "all", "Key": key}}));
                }
                self.call(Operation::TransactWriteItems, json!({"TransactItems": actions})).await;
            }
            _ => {
                // A hot item, with a long history.
                let set = "UPDATE \"all\" SET n = ? WHERE pk = 'p' AND sk = 0";
                for _ in 0..self.random.random_range(1..30) {
                    let item = json!({"pk": {"S": "p"}, "sk": {"N": "0"}});
                    self.call(Operation::PutItem, json!({"TableName": "all", "Item": item})).await;
                    let number = json!({"N": self.random.random_range(0..9).to_string()});
                    let body = json!({"Statement": set, "Parameters": [number]});
                    self.call(Operation::ExecuteStatement, body).await;
                }
            }
        }
    }

    /// A second that is over and can be read, with what the table held at its end.
    fn past_second(&mut self) -> Option<(u64, State)> {
        let seconds: Vec<u64> = self.past.range(self.first..).map(|(second, _)| *second).collect();
        if seconds.is_empty() {
            return None;
        }
        let second = seconds[self.random.random_range(0..seconds.len())];
        Some((second, self.past[&second].clone()))
    }

    async fn read_past(&mut self) {
        let Some((second, state)) = self.past_second() else { return };
        let limit = Some(self.random.random_range(1..8)).filter(|limit| *limit < 6);
        let scanned = self.scan("all", Some(second), limit).await;
        assert_eq!(scanned.len(), state.len(), "as of {second}");
        assert_eq!(by_key(scanned), state, "as of {second}");

        let key = self.key();
        let expected = state.get(&key_of(&key)).cloned().unwrap_or(Value::Null);
        let get = json!({"TableName": "all", "Key": key});
        let mut got = self.call_as_of(second, Operation::GetItem, get).await;
        assert_eq!(got["Item"].take(), expected, "{key} as of {second}");
        let batch = json!({"RequestItems": {"all": {"Keys": [key]}}});
        let batch = self.call_as_of(second, Operation::BatchGetItem, batch).await;
        assert_eq!(batch["Responses"]["all"].get(0).cloned().unwrap_or(Value::Null), expected);

        let partition = key["pk"].clone();
        let mut expected: Vec<Value> =
            state.values().filter(|item| item["pk"] == partition).cloned().collect();
        expected.sort_by_key(|item| item["sk"]["N"].as_str().unwrap().parse::<u64>().unwrap());
        for is_forward in [true, false] {
            let found = self.query_past(second, &partition, is_forward, limit).await;
            assert_eq!(found, expected, "{partition} as of {second}");
            expected.reverse();
        }
        let select = json!({
            "Statement": "SELECT * FROM \"all\" WHERE pk = ?", "Parameters": [partition],
        });
        let selected = self.call_as_of(second, Operation::ExecuteStatement, select).await;
        assert_eq!(selected["Items"], Value::Array(expected), "{partition} as of {second}");
    }

    async fn query_past(
        &self,
        second: u64,
        partition: &Value,
        is_forward: bool,
        limit: Option<usize>,
    ) -> Vec<Value> {
        let mut items = Vec::new();
        let mut body = json!({
            "TableName": "all", "KeyConditionExpression": "pk = :p", "ScanIndexForward": is_forward,
            "ExpressionAttributeValues": {":p": partition},
        });
        if let Some(limit) = limit {
            body["Limit"] = limit.into();
        }
        loop {
            let mut page = self.call_as_of(second, Operation::Query, body.clone()).await;
            items.append(page["Items"].as_array_mut().expect("items"));
            match page["LastEvaluatedKey"].take() {
                Value::Null => return items,
                last => body["ExclusiveStartKey"] = last,
            }
        }
    }

    /// Background work: expiry, trimming, restores.
    async fn work(&self) {
        let engines = self.engines.as_ref().expect("the store is open");
        engines.any().run_pending_work().await.expect("the work is done");
    }

    /// Closes the store and opens it again, sometimes after the process has died.
    async fn reopen(&mut self) {
        if self.random.random_bool(0.5) {
            self.disk.crash();
        }
        self.engines = None;
        self.disk.recover();
        self.engines = Some(self.disk.engines(&self.clock, Limits::default()).await);
    }

    /// Restores the table to a second, perhaps with a restart in between, and compares.
    async fn restore(&mut self) {
        let Some((second, state)) = self.past_second() else { return };
        self.restored += 1;
        let name = format!("restored-{}", self.restored);
        let restore = json!({
            "SourceTableName": "all", "TargetTableName": name, "RestoreDateTime": second,
        });
        let begun = self.call(Operation::RestoreTableToPointInTime, restore).await;
        assert_eq!(begun["TableDescription"]["TableStatus"], "CREATING");
        self.check_restored(&name, &state).await;
    }

    /// Finishes a restore, perhaps with a restart in between, compares, and deletes the table.
    async fn check_restored(&mut self, name: &str, state: &State) {
        if self.random.random_bool(0.3) {
            self.write().await;
            self.reopen().await;
        }
        self.finish(name).await;
        assert_eq!(self.state(name).await, *state, "{name}");
        self.check_consistency(name).await;
        self.call(Operation::DeleteTable, json!({"TableName": name})).await;
    }

    async fn back_up(&mut self) {
        let state = self.state("all").await;
        let body = json!({"TableName": "all", "BackupName": "model"});
        let mut made = self.call(Operation::CreateBackup, body).await;
        let arn = made["BackupDetails"]["BackupArn"].take();
        let described = self.call(Operation::DescribeBackup, json!({"BackupArn": arn})).await;
        let details = &described["BackupDescription"];
        assert_eq!(details["BackupDetails"]["BackupStatus"], "AVAILABLE");
        assert_eq!(details["SourceTableDetails"]["ItemCount"], state.len());
        self.backups.push((arn, state));
    }

    /// Restores a backup, which may be copied already, or not yet, or meanwhile.
    async fn restore_backup(&mut self) {
        if self.backups.is_empty() {
            return;
        }
        let chosen = self.random.random_range(0..self.backups.len());
        let (arn, state) = self.backups[chosen].clone();
        self.restored += 1;
        let name = format!("restored-{}", self.restored);
        let restore = json!({"BackupArn": arn, "TargetTableName": name});
        self.call(Operation::RestoreTableFromBackup, restore).await;
        self.check_restored(&name, &state).await;
    }

    async fn delete_backup(&mut self) {
        if self.backups.is_empty() {
            return;
        }
        let chosen = self.random.random_range(0..self.backups.len());
        let (arn, _) = self.backups.swap_remove(chosen);
        self.call(Operation::DeleteBackup, json!({"BackupArn": arn})).await;
        let listed = self.call(Operation::ListBackups, json!({"TableName": "all"})).await;
        assert_eq!(listed["BackupSummaries"].as_array().map(Vec::len), Some(self.backups.len()));
    }

    /// Works until a table is active.
    async fn finish(&self, name: &str) {
        for _ in 0..100 {
            self.work().await;
            let table = self.call(Operation::DescribeTable, json!({"TableName": name})).await;
            if table["Table"]["TableStatus"] == "ACTIVE" {
                return;
            }
            assert_eq!(table["Table"]["RestoreSummary"]["RestoreInProgress"], true);
        }
        panic!("{name} is never active");
    }

    async fn check_consistency(&self, name: &str) {
        let table = TableName { namespace: self.namespace.clone(), name: name.to_owned() };
        let engines = self.engines.as_ref().expect("the store is open");
        let found = engines.any().check_consistency(&table).await;
        assert_eq!(found.expect("the table can be checked"), [], "{name}");
    }

    /// How many undo rows the table has.
    async fn versions(&self) -> u64 {
        let engines = self.engines.as_ref().expect("the store is open");
        let sizes = engines.any().history_sizes().await.expect("the sizes can be read");
        sizes.iter().find(|size| size.table.name == "all").expect("a history").versions
    }

    /// Days after the last change, nothing of the history is left.
    async fn trim(&mut self) {
        let number = json!({"N": self.second().to_string()});
        let item = json!({"pk": {"S": "p"}, "sk": {"N": "0"}, "n": number});
        self.call(Operation::PutItem, json!({"TableName": "all", "Item": item})).await;
        assert!(self.versions().await > 0);
        for _ in 0..100 {
            self.clock.advance_ms(48 * HOUR_MS);
            self.work().await;
            // What has just expired leaves new versions.
            if self.versions().await == 0 {
                return;
            }
        }
        panic!("{} versions are never trimmed", self.versions().await);
    }

    /// Deletes the table, and restores it from the backup that it leaves, and from a user's.
    async fn end(mut self) {
        self.trim().await;
        self.check_consistency("all").await;
        let state = self.state("all").await;
        self.back_up().await;
        self.call(Operation::DeleteTable, json!({"TableName": "all"})).await;
        let (arn, last) = self.backups.pop().expect("it was made just now");
        assert_eq!(last, state);
        let restore = json!({"BackupArn": arn, "TargetTableName": "from-backup"});
        self.call(Operation::RestoreTableFromBackup, restore).await;
        self.finish("from-backup").await;
        assert_eq!(self.state("from-backup").await, state);
        self.check_consistency("from-backup").await;
        self.work().await;
        let backups = self.call(Operation::ListBackups, json!({"BackupType": "SYSTEM"})).await;
        let backup = &backups["BackupSummaries"][0];
        assert_eq!(backup["BackupName"], "all$DeletedTableBackup");
        let restore = json!({"BackupArn": backup["BackupArn"], "TargetTableName": "again"});
        self.call(Operation::RestoreTableFromBackup, restore).await;
        self.reopen().await;
        self.finish("again").await;
        assert_eq!(self.state("again").await, state);
        self.check_consistency("again").await;
    }
}

async fn answer(
    api: &Api,
    operation: Operation,
    namespace: &Arc<Namespace>,
    body: &Value,
) -> Value {
    let response = api.handle(operation, namespace, body.to_string().as_bytes()).await;
    let answer: Value = serde_json::from_slice(&response.body).expect("answers are JSON");
    assert_eq!(response.status, 200, "{}: {body} {answer}", operation.name());
    answer
}

fn by_key(items: Vec<Value>) -> State {
    items.into_iter().map(|item| (key_of(&item), item)).collect()
}

fn key_of(item: &Value) -> String {
    format!("{} {}", item["pk"]["S"], item["sk"]["N"])
}

fn create_table() -> Value {
    let attribute = |name: &str, kind: &str| json!({"AttributeName": name, "AttributeType": kind});
    let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
    json!({
        "TableName": "all",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [attribute("pk", "S"), attribute("sk", "N"), attribute("v", "N")],
        "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
        "GlobalSecondaryIndexes": [{
            "IndexName": "by-value", "KeySchema": [key("v", "HASH")],
            "Projection": {"ProjectionType": "ALL"},
        }],
        "LocalSecondaryIndexes": [{
            "IndexName": "in-order", "KeySchema": [key("pk", "HASH"), key("v", "RANGE")],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }],
    })
}
