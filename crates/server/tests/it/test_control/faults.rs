//! Faults that requests meet one by one.

use serde_json::{Value, json};
use zenobe_testing::{Client, ServerProcess, wait_until};

use super::{add_fault, control, controlled, items, outcome};
use crate::triggers::{create_table, put};

fn put_request(table: &str, pk: &str) -> Value {
    json!({"TableName": table, "Item": {"pk": {"S": pk}}})
}

fn with_table(arguments: &[&str]) -> (ServerProcess, Client) {
    let process = controlled(arguments);
    let mut client = process.client();
    create_table(&mut client, "events");
    (process, client)
}

#[test]
fn each_kind_of_fault_is_dynamodbs_own() {
    let (process, mut client) = with_table(&[]);
    client.expect(
        "CreateTable",
        &json!({
            "TableName": "provisioned",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
        }),
    );
    let mut check =
        |rule: &str, operation: &str, body: Value, status: u16, name: &str, text: &str| {
            let id = add_fault(&process, rule);
            let reply = client.call(operation, &body).unwrap();
            assert_eq!(reply.status, status, "{rule}: {}", reply.body);
            let found = reply.body["__type"].as_str().unwrap().rsplit('#').next().unwrap();
            assert_eq!(found, name, "{rule}");
            let message =
                reply.body["message"].as_str().or(reply.body["Message"].as_str()).unwrap();
            assert!(message.contains(text), "{rule}: {message}");
            control(&process, "DELETE", &format!("faults/{id}"), &Value::Null);
            assert_eq!(outcome(&mut client, operation, &body), "OK", "{rule} is gone");
            reply.body
        };
    let throttle = "kind=throttle";
    let on_demand = "ThrottlingException";
    let thrown = check(
        throttle,
        "PutItem",
        put_request("events", "a"),
        400,
        on_demand,
        "exceeds the current capacity of your table",
    );
    // As a request that really meets a limit.
    let reason = |name: &str, table: &str| {
        let resource = format!("arn:aws:dynamodb:us-east-1:000000000000:table/{table}");
        json!([{ "reason": name, "resource": resource }])
    };
    let expected = reason("TableWriteKeyRangeThroughputExceeded", "events");
    assert_eq!(thrown["throttlingReasons"], expected);
    let provisioned = "ProvisionedThroughputExceededException";
    let thrown = check(
        throttle,
        "PutItem",
        put_request("provisioned", "a"),
        400,
        provisioned,
        "configured provisioned throughput for the table",
    );
    let expected = reason("TableWriteProvisionedThroughputExceeded", "provisioned");
    assert_eq!(thrown["ThrottlingReasons"], expected);
    check(throttle, "ListTables", json!({}), 400, on_demand, "Rate exceeded");
    check(
        "kind=error",
        "PutItem",
        put_request("events", "a"),
        500,
        "InternalServerError",
        "Internal server error",
    );
    check(
        "kind=unavailable",
        "PutItem",
        put_request("events", "a"),
        503,
        "ServiceUnavailable",
        "unavailable",
    );
    let conflict = "TransactionConflictException";
    check(
        "kind=conflict",
        "PutItem",
        put_request("events", "a"),
        400,
        conflict,
        "Transaction is ongoing for the item",
    );
    let action = |pk: &str| json!({"Put": put_request("events", pk)});
    let transaction = json!({"TransactItems": [action("x"), action("y"), action("z")]});
    let cancelled = check(
        "kind=conflict",
        "TransactWriteItems",
        transaction,
        400,
        "TransactionCanceledException",
        "Transaction cancelled, please refer cancellation reasons for specific reasons",
    );
    let reasons = cancelled["CancellationReasons"].as_array().unwrap();
    let codes: Vec<_> = reasons.iter().map(|reason| reason["Code"].as_str().unwrap()).collect();
    assert_eq!(codes.iter().filter(|code| **code == "TransactionConflict").count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == "None").count(), 2, "{codes:?}");
}

#[test]
fn a_rule_meets_only_what_it_names() {
    let (process, mut client) =
        with_table(&["--fault", "kind=throttle table=ev* operation=PutItem|Query"]);
    create_table(&mut client, "others");
    assert_eq!(outcome(&mut client, "PutItem", &put_request("events", "a")), "ThrottlingException");
    assert_eq!(outcome(&mut client, "PutItem", &put_request("others", "a")), "OK");
    let key = json!({"TableName": "events", "Key": {"pk": {"S": "a"}}});
    assert_eq!(outcome(&mut client, "GetItem", &key), "OK");
    let faults = control(&process, "GET", "faults", &Value::Null);
    assert_eq!(faults["faults"][0]["matched"], 1);
    assert_eq!(faults["faults"][0]["fired"], 1);
}

/// Whether each of many requests fails depends on the seed only.
#[test]
fn the_same_requests_meet_the_same_faults() {
    let run = |seed: &str| {
        let rules = ["--fault", "kind=throttle rate=0.2", "--fault", "kind=error rate=0.1"];
        let process = controlled(&[&rules[..], &["--fault-seed", seed]].concat());
        let mut client = process.client();
        let mut round = || {
            let calls = (0..200).map(|_| outcome(&mut client, "ListTables", &json!({})));
            calls.collect::<Vec<String>>()
        };
        let first = round();
        // After a reset everything starts over, also the draws.
        control(&process, "POST", "reset", &json!({}));
        assert_eq!(round(), first);
        first
    };
    let one = run("1");
    let count = |name: &str| one.iter().filter(|outcome| *outcome == name).count();
    assert!((20..60).contains(&count("ThrottlingException")), "{}", count("ThrottlingException"));
    assert!((5..40).contains(&count("InternalServerError")), "{}", count("InternalServerError"));
    assert_eq!(run("1"), one);
    assert_ne!(run("2"), one);
}

#[test]
fn a_dropped_connection_may_leave_its_work_done() {
    let (process, mut client) = with_table(&[]);
    add_fault(&process, "kind=drop operation=PutItem when=before times=1");
    assert_eq!(outcome(&mut client, "PutItem", &put_request("events", "a")), "dropped");
    assert_eq!(items(&mut client, "events"), 0);
    add_fault(&process, "kind=drop operation=PutItem when=after times=1");
    assert_eq!(outcome(&mut client, "PutItem", &put_request("events", "a")), "dropped");
    assert_eq!(items(&mut client, "events"), 1);
    add_fault(&process, "kind=error operation=PutItem when=after times=1");
    assert_eq!(outcome(&mut client, "PutItem", &put_request("events", "b")), "InternalServerError");
    assert_eq!(items(&mut client, "events"), 2);
    assert_eq!(outcome(&mut client, "PutItem", &put_request("events", "c")), "OK");
}

/// A request that waits gets its answer, and others don't wait with it.
#[test]
fn latency_delays_the_requests_it_names() {
    let (process, mut client) = with_table(&[]);
    let id = add_fault(&process, "kind=latency operation=PutItem delay=24h times=1");
    std::thread::scope(|scope| {
        let mut slow = process.client();
        let waiting =
            scope.spawn(move || slow.call("PutItem", &put_request("events", "slow")).is_err());
        wait_until(|| control(&process, "GET", "faults", &Value::Null)["faults"][0]["fired"] == 1);
        put(&mut client, "events", "fast", 1);
        assert_eq!(items(&mut client, "events"), 1);
        // A restore doesn't wait for it either.
        control(&process, "POST", "reset", &json!({}));
        assert!(!waiting.is_finished());
        drop(process);
        assert!(waiting.join().unwrap(), "rule {id}");
    });
}

#[test]
fn parts_of_batches_are_left_unprocessed() {
    let (process, mut client) = with_table(&[]);
    add_fault(&process, "kind=unprocessed rate=0.5");
    let request = |pk: u32| json!({"PutRequest": {"Item": {"pk": {"S": pk.to_string()}}}});
    let mut left: Vec<Value> = (0..25).map(request).collect();
    let mut rounds = 0;
    while !left.is_empty() {
        let batch = json!({"RequestItems": {"events": left}});
        let answer = client.expect("BatchWriteItem", &batch);
        let unprocessed =
            answer["UnprocessedItems"]["events"].as_array().cloned().unwrap_or_default();
        assert!(unprocessed.len() < left.len(), "every round gets on");
        left = unprocessed;
        rounds += 1;
    }
    assert!(rounds > 1);
    control(&process, "DELETE", "faults", &Value::Null);
    assert_eq!(items(&mut client, "events"), 25);
    add_fault(&process, "kind=unprocessed rate=0.5 operation=BatchGetItem");
    let keys: Vec<Value> = (0..25).map(|pk: u32| json!({"pk": {"S": pk.to_string()}})).collect();
    let got = client.expect("BatchGetItem", &json!({"RequestItems": {"events": {"Keys": keys}}}));
    let count = got["Responses"]["events"].as_array().unwrap().len();
    let unprocessed = got["UnprocessedKeys"]["events"]["Keys"].as_array().unwrap().len();
    assert_eq!(count + unprocessed, 25);
    assert!(unprocessed > 0);
}
