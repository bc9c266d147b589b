//! An engine, its API and the service, in one place.

use std::sync::Arc;

use serde_json::{Value, json};
use zenobe_api::{Api, ApiOptions, Operation};
use zenobe_engine::clock::{Clock, ManualClock};
use zenobe_engine::schema::Namespace;
use zenobe_engine::{Engine, EngineOptions};
use zenobe_scaling::{Scaling, TrackingAlarm};
use zenobe_store::Store;
use zenobe_store::memory::MemoryStore;

/// A full minute.
pub const START_MS: u64 = 1_765_432_080_000;
pub const MINUTE_MS: u64 = 60 * 1_000;

pub struct World {
    pub clock: Arc<ManualClock>,
    pub engine: Arc<Engine>,
    pub scaling: Scaling,
    pub namespace: Arc<Namespace>,
    api: Api,
}

impl World {
    pub async fn new() -> World {
        let clock = Arc::new(ManualClock::new(START_MS));
        World::on(Arc::new(MemoryStore::new()), clock, 7).await
    }

    pub async fn on(store: Arc<dyn Store>, clock: Arc<ManualClock>, seed: u64) -> World {
        let account = "000000000000";
        World::of_account(account, store, clock.clone(), clock, seed).await
    }

    /// With an account, and with a clock that shows what the manual one does.
    pub async fn of_account(
        account: &str,
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        shown: Arc<dyn Clock>,
        seed: u64,
    ) -> World {
        let options = EngineOptions { clock: shown, ..EngineOptions::default() };
        World::with(options, account, store, clock, seed).await
    }

    /// With options whose clock shows what the manual one does.
    pub async fn with(
        options: EngineOptions,
        account: &str,
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        seed: u64,
    ) -> World {
        let options = EngineOptions { random_seed: Some(seed), ..options };
        let engine = Engine::open(store, options).await.expect("the engine opens");
        let api = Api::new(Arc::clone(&engine), ApiOptions::default());
        let namespace = Namespace { account: account.into(), region: "us-east-1".into() };
        let scaling = Scaling::new(Arc::clone(&engine));
        World { clock, engine, scaling, api, namespace: Arc::new(namespace) }
    }

    pub async fn scaling(&self, operation: &str, body: &str) -> (u16, String) {
        let answer = self.scaling.answer(operation, &self.namespace, body.as_bytes()).await;
        (answer.status, String::from_utf8(answer.body).expect("answers are UTF-8"))
    }

    /// A request to the service that has to succeed.
    pub async fn done(&self, operation: &str, body: Value) -> Value {
        let (status, answer) = self.scaling(operation, &body.to_string()).await;
        assert_eq!(status, 200, "{operation} {body}: {answer}");
        serde_json::from_str(&answer).expect("answers are JSON")
    }

    pub async fn policy_alarms(&self) -> Vec<TrackingAlarm> {
        self.scaling.policy_alarms(&self.namespace).await.expect("the rows are read")
    }

    /// A request to DynamoDB that has to succeed.
    pub async fn dynamodb(&self, operation: &str, body: Value) -> Value {
        let known =
            Operation::from_target(&format!("DynamoDB_20120810.{operation}")).expect("known");
        let answer = self.api.handle(known, &self.namespace, body.to_string().as_bytes()).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 200, "{operation} {body}: {text}");
        serde_json::from_str(&text).expect("answers are JSON")
    }

    /// A table `Orders` with the global index `by-state`, with this many units everywhere.
    pub async fn create_table(&self, units: u64) {
        let throughput = json!({"ReadCapacityUnits": units, "WriteCapacityUnits": units});
        let definition = json!({
            "TableName": "Orders",
            "AttributeDefinitions": [
                {"AttributeName": "id", "AttributeType": "S"},
                {"AttributeName": "state", "AttributeType": "S"},
            ],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "ProvisionedThroughput": throughput,
            "GlobalSecondaryIndexes": [{
                "IndexName": "by-state",
                "KeySchema": [{"AttributeName": "state", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
                "ProvisionedThroughput": throughput,
            }],
        });
        self.dynamodb("CreateTable", definition).await;
    }

    /// Writes new items of this many units in all. Replacing others would cost what those cost.
    pub async fn write(&self, units: usize) {
        for (number, size) in std::iter::repeat_n(400, units / 400).chain([units % 400]).enumerate()
        {
            if size > 0 {
                let data = "x".repeat(size * 1_024 - 100);
                let id = format!("{}-{number}", self.clock.now_ms());
                let item = json!({"id": {"S": id}, "data": {"S": data}});
                self.dynamodb("PutItem", json!({"TableName": "Orders", "Item": item})).await;
            }
        }
    }

    pub async fn pass_minutes(&self, minutes: u64) {
        self.clock.advance_ms(minutes * MINUTE_MS);
        self.scaling.run_due().await.expect("the work is done");
    }

    /// The read and the write units of the table.
    pub async fn units(&self) -> (u64, u64) {
        let table = self.dynamodb("DescribeTable", json!({"TableName": "Orders"})).await;
        let throughput = &table["Table"]["ProvisionedThroughput"];
        let units = |member: &str| throughput[member].as_u64().expect("a number");
        (units("ReadCapacityUnits"), units("WriteCapacityUnits"))
    }

    /// The write units of the table as a target with these members besides.
    pub async fn register(&self, members: Value) -> Value {
        self.done("RegisterScalableTarget", target(members)).await
    }

    /// A policy that holds the writes at 50 % with these members of its configuration besides.
    pub async fn track(&self, configuration: Value) -> Value {
        let metric = json!({"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"});
        let mut settings = json!({"TargetValue": 50.0, "PredefinedMetricSpecification": metric});
        merge(&mut settings, configuration);
        let policy = json!({
            "PolicyName": "half",
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": settings,
        });
        self.done("PutScalingPolicy", target(policy)).await
    }

    /// Description, cause, status and message of all activities, the newest first.
    pub async fn activities(&self) -> Vec<[String; 4]> {
        let request = json!({"ServiceNamespace": "dynamodb", "IncludeNotScaledActivities": true});
        let answer = self.done("DescribeScalingActivities", request).await;
        let activities = answer["ScalingActivities"].as_array().expect("a list").iter();
        let told = activities.map(|activity| {
            let text = |member: &str| activity[member].as_str().unwrap_or_default().to_owned();
            let message = match activity["NotScaledReasons"].as_array() {
                Some(reasons) => reasons[0].to_string(),
                None => text("StatusMessage"),
            };
            [text("Description"), text("Cause"), text("StatusCode"), message]
        });
        told.collect()
    }
}

/// The members that identify the table's writes, with others.
pub fn target(mut members: Value) -> Value {
    let identity = json!({
        "ServiceNamespace": "dynamodb",
        "ResourceId": "table/Orders",
        "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
    });
    merge(&mut members, identity);
    members
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}
