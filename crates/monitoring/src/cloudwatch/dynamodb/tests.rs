use std::time::Duration;

use serde_json::{Value as Json, json};
use zenobe_api::{Api, ApiOptions, Operation};
use zenobe_engine::EngineOptions;
use zenobe_engine::throughput::cause::ThrottleEvents;
use zenobe_store::memory::MemoryStore;

use super::super::statistics::Statistic;
use super::*;
use crate::traffic::{Pattern, TrafficKey};

fn row(
    table: Option<&str>,
    index: Option<&str>,
    operation: Operation,
    counts: TrafficCounts,
) -> TrafficRow {
    let namespace = Arc::new(Namespace { account: "1".into(), region: "r".into() });
    let (table, index) = (table.map(str::to_owned), index.map(str::to_owned));
    TrafficRow {
        key: TrafficKey { namespace, table, index, operation, pattern: Pattern::Key, verb: None },
        counts,
    }
}

#[test]
fn traffic_becomes_metrics_with_their_dimensions() {
    let mut latency = Latency::default();
    (1..=1_000).for_each(|us| latency.add(Duration::from_micros(us * 10)));
    let mut throttled_reads = ThrottleEvents::default();
    for causes in [&[ThrottleCause::KeyRange][..], &ThrottleCause::ALL[..], &[]] {
        throttled_reads.add(causes.iter().copied().collect());
    }
    let reads = TrafficCounts {
        requests: 1_000,
        succeeded: 1_000,
        read_halves: 1_000,
        consuming_reads: 1_000,
        throttled_requests: 2,
        throttled_reads,
        latency,
        ..TrafficCounts::default()
    };
    let writes = TrafficCounts {
        requests: 4,
        user_errors: 2,
        conditional_check_failures: 1,
        write_halves: 8,
        consuming_writes: 2,
        ..TrafficCounts::default()
    };
    let index = TrafficCounts { write_halves: 6, consuming_writes: 3, ..TrafficCounts::default() };
    let nobody = TrafficCounts { requests: 3, user_errors: 3, ..TrafficCounts::default() };
    let mut points = MinutePoints::default();
    points.add_traffic(&[
        row(Some("T"), None, Operation::GetItem, reads),
        row(Some("T"), None, Operation::PutItem, writes),
        row(Some("T"), Some("I"), Operation::PutItem, index),
        row(None, None, Operation::ListTables, nobody),
    ]);
    let (_, points) = points.into_points(60_000).next().unwrap();
    let find = |name: &str, dimensions: &[(&str, &str)]| {
        let metric = Metric::dynamodb(name, dimensions);
        let point = points.iter().find(|point| point.metric == metric);
        point.unwrap_or_else(|| panic!("{metric:?}")).statistics.clone()
    };
    let (table, get) = (("TableName", "T"), ("Operation", "GetItem"));
    let sum = |name, dimensions: &[_]| find(name, dimensions).sum;
    assert_eq!(sum("ConsumedReadCapacityUnits", &[table]), 500.0);
    assert_eq!(sum("ConsumedWriteCapacityUnits", &[table]), 4.0);
    // Requests that consumed nothing are not samples.
    let of_table = find("ConsumedWriteCapacityUnits", &[table]);
    assert_eq!((of_table.count, of_table.get(Statistic::Average)), (2.0, Some(2.0)));
    let of_index = [table, ("GlobalSecondaryIndexName", "I")];
    let of_index = find("ConsumedWriteCapacityUnits", &of_index);
    assert_eq!((of_index.count, of_index.get(Statistic::Average)), (3.0, Some(1.0)));
    // An event with several causes is one event.
    assert_eq!(sum("ReadThrottleEvents", &[table]), 2.0);
    assert_eq!(sum("ReadKeyRangeThroughputThrottleEvents", &[table]), 2.0);
    assert_eq!(sum("ReadProvisionedThroughputThrottleEvents", &[table]), 1.0);
    assert_eq!(sum("ReadAccountLimitThrottleEvents", &[table]), 1.0);
    assert_eq!(sum("ReadMaxOnDemandThroughputThrottleEvents", &[table]), 1.0);
    assert_eq!(sum("ThrottledRequests", &[table, get]), 2.0);
    assert_eq!(sum("ConditionalCheckFailedRequests", &[table]), 1.0);
    assert_eq!(sum("UserErrors", &[]), 5.0);
    let latency = find("SuccessfulRequestLatency", &[get, table]);
    assert_eq!((latency.count, latency.min, latency.max), (1_000.0, 0.01, 10.0));
    assert_eq!(latency.get(Statistic::Average), Some(5.005));
    for (percentile, expected) in [(5_000, 5.0), (9_900, 9.9)] {
        let found = latency.get(Statistic::Percentile(percentile)).unwrap();
        assert!((found / expected - 1.0).abs() < 0.2, "{percentile}: {found}");
    }
    assert_eq!(points.len(), 12);
}

/// A request that reads by key and by query consumed units once.
#[test]
fn a_request_of_several_patterns_is_one_sample() {
    let kind = |pattern, counts| {
        let mut row = row(Some("T"), None, Operation::BatchExecuteStatement, counts);
        row.key.pattern = pattern;
        row
    };
    let first = TrafficCounts {
        requests: 2,
        succeeded: 2,
        read_halves: 4,
        consuming_reads: 2,
        ..TrafficCounts::default()
    };
    let second = TrafficCounts { read_halves: 8, returned_items: 6, ..TrafficCounts::default() };
    let mut points = MinutePoints::default();
    points.add_traffic(&[kind(Pattern::Key, first), kind(Pattern::Other, second)]);
    let (_, points) = points.into_points(60_000).next().unwrap();
    let samples = |name: &str| {
        let point = points.iter().find(|point| point.metric.name == name).unwrap();
        (point.statistics.count, point.statistics.max)
    };
    assert_eq!(samples("ConsumedReadCapacityUnits"), (2.0, 3.0));
    assert_eq!(samples("ReturnedItemCount"), (2.0, 3.0));
}

#[test]
fn statements_are_told_apart_by_verb_or_operation_type() {
    let kind = |operation, verb, pattern, throttled_requests| {
        let counts = TrafficCounts { throttled_requests, ..TrafficCounts::default() };
        let mut row = row(Some("T"), None, operation, counts);
        (row.key.verb, row.key.pattern) = (verb, pattern);
        row
    };
    let scan = Pattern::Scan { filtered: false, local_index: false };
    let (one, batch) = (Operation::ExecuteStatement, Operation::BatchExecuteStatement);
    let mut points = MinutePoints::default();
    points.add_traffic(&[
        kind(one, Some(Verb::Select), Pattern::Key, 1),
        kind(one, Some(Verb::Select), scan, 2),
        kind(one, Some(Verb::Insert), Pattern::Write, 4),
        kind(batch, None, Pattern::Key, 8),
        kind(batch, None, Pattern::Write, 16),
        // Of tables that were not told apart.
        kind(batch, None, Pattern::Other, 32),
    ]);
    let (_, points) = points.into_points(60_000).next().unwrap();
    let table = ("TableName", "T");
    let sum = |dimensions: &[(&str, &str)]| {
        let metric = Metric::dynamodb("ThrottledRequests", dimensions);
        points.iter().find(|point| point.metric == metric).map(|point| point.statistics.sum)
    };
    let (operation, verb) = (("Operation", "ExecuteStatement"), |verb| ("Verb", verb));
    assert_eq!(sum(&[table, operation]), Some(7.0));
    assert_eq!(sum(&[table, operation, verb("PartiQLSelect")]), Some(3.0));
    assert_eq!(sum(&[table, operation, verb("PartiQLInsert")]), Some(4.0));
    let operation = ("Operation", "BatchExecuteStatement");
    assert_eq!(sum(&[table, operation]), Some(56.0));
    assert_eq!(sum(&[table, operation, ("OperationType", "Read")]), Some(8.0));
    assert_eq!(sum(&[table, operation, ("OperationType", "Write")]), Some(16.0));
    assert_eq!(points.len(), 6);
}

#[test]
fn injected_errors_are_system_errors() {
    let namespace = Arc::new(Namespace { account: "1".into(), region: "r".into() });
    let table = TableName { namespace, name: "T".into() };
    let injected = InjectedErrors { table, operation: Operation::Scan, count: 3 };
    let mut points = MinutePoints::default();
    points.add_injected_errors(&[injected]);
    let (_, points) = points.into_points(60_000).next().unwrap();
    for name in ["SystemErrors", "FaultInjectionServiceInducedErrors"] {
        let metric = Metric::dynamodb(name, &[("TableName", "T"), ("Operation", "Scan")]);
        let point = points.iter().find(|point| point.metric == metric).unwrap();
        assert_eq!(point.statistics.sum, 3.0, "{name}");
    }
}

/// An account with two tables and an index, and with a stream that somebody has read.
#[tokio::test]
async fn quotas_in_use_and_streams_have_metrics() {
    let options = EngineOptions::default();
    let engine = Engine::open(Arc::new(MemoryStore::new()), options).await.unwrap();
    let api = Api::new(Arc::clone(&engine), ApiOptions::default());
    let namespace = Arc::new(Namespace { account: "1".into(), region: "r".into() });
    let call = async |operation: Operation, body: Json| {
        let answer = api.handle(operation, &namespace, body.to_string().as_bytes()).await;
        assert_eq!(answer.status, 200, "{operation:?}: {:?}", answer.body);
        serde_json::from_slice::<Json>(&answer.body).unwrap()
    };
    let units = json!({"ReadCapacityUnits": 3, "WriteCapacityUnits": 4});
    let hash = json!([{"AttributeName": "id", "KeyType": "HASH"}]);
    let table = |name: &str| {
        json!({
            "TableName": name,
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": hash,
            "BillingMode": "PAY_PER_REQUEST",
        })
    };
    let mut provisioned = table("Provisioned");
    provisioned["BillingMode"] = json!("PROVISIONED");
    provisioned["ProvisionedThroughput"] = units.clone();
    let projection = json!({"ProjectionType": "ALL"});
    provisioned["GlobalSecondaryIndexes"] = json!([
        {"IndexName": "ById", "KeySchema": hash, "Projection": projection, "ProvisionedThroughput": units},
    ]);
    call(Operation::CreateTable, provisioned).await;
    let mut streamed = table("Streamed");
    streamed["StreamSpecification"] = json!({"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"});
    let created = call(Operation::CreateTable, streamed).await;
    let arn = created["TableDescription"]["LatestStreamArn"].clone();
    let label = created["TableDescription"]["LatestStreamLabel"].as_str().unwrap().to_owned();
    for id in ["a", "b", "c"] {
        let item = json!({"id": {"S": id}});
        call(Operation::PutItem, json!({"TableName": "Streamed", "Item": item})).await;
    }
    let described = call(Operation::DescribeStream, json!({"StreamArn": arn})).await;
    let shard = &described["StreamDescription"]["Shards"][0]["ShardId"];
    let start = json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"});
    let mut iterator = call(Operation::GetShardIterator, start).await["ShardIterator"].clone();
    for limit in [1, 2, 1] {
        let request = json!({"ShardIterator": iterator, "Limit": limit});
        iterator = call(Operation::GetRecords, request).await["NextShardIterator"].clone();
    }
    // Nobody fills the new index here.
    let create = json!({"IndexName": "New", "KeySchema": hash, "Projection": projection});
    let attributes = json!([{"AttributeName": "id", "AttributeType": "S"}]);
    let update = json!({
        "TableName": "Streamed",
        "AttributeDefinitions": attributes,
        "GlobalSecondaryIndexUpdates": [{"Create": create}],
    });
    call(Operation::UpdateTable, update).await;

    let mut points = MinutePoints::default();
    points.add_gauges(&engine).await.unwrap();
    points.add_returned_records(&engine.take_returned_records());
    let (_, points) = points.into_points(60_000).next().unwrap();
    let find = |metric: &Metric| {
        let point = points.iter().find(|point| point.metric == *metric);
        let point = point.unwrap_or_else(|| panic!("{metric:?}"));
        (point.unit.name(), point.statistics.count, point.statistics.sum)
    };
    let usage = |resource| find(&Metric::usage(resource));
    assert_eq!(usage("TableCount"), ("Count", 1.0, 2.0));
    assert_eq!(usage("AccountProvisionedReadCapacityUnits"), ("Count", 1.0, 6.0));
    assert_eq!(usage("AccountProvisionedWriteCapacityUnits"), ("Count", 1.0, 8.0));
    let new = [("TableName", "Streamed"), ("GlobalSecondaryIndexName", "New")];
    let of_new = |name| find(&Metric::dynamodb(name, &new));
    assert_eq!(of_new("OnlineIndexPercentageProgress"), ("Percent", 1.0, 0.0));
    assert_eq!(of_new("OnlineIndexConsumedWriteCapacity"), ("Count", 1.0, 0.0));
    assert_eq!(of_new("OnlineIndexThrottleEvents"), ("Count", 1.0, 0.0));
    let dimensions =
        [("TableName", "Streamed"), ("Operation", "GetRecords"), ("StreamLabel", label.as_str())];
    let of_stream = |name| find(&Metric::dynamodb(name, &dimensions));
    assert_eq!(of_stream("ReturnedRecordsCount"), ("Count", 2.0, 3.0), "without the empty page");
    // The keys: two bytes of the name and one of the value, each.
    assert_eq!(of_stream("ReturnedBytes"), ("Bytes", 2.0, 9.0));
}
