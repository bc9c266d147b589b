//! Rules that tables carry as tags.

use serde_json::{Value, json};
use zenobe_testing::{Client, TemporaryDirectory};

use super::{control, controlled, outcome};
use crate::triggers::{create_table, serve};

fn tag(client: &mut Client, table: &str, key: &str, value: &str) -> Value {
    let arn = format!("arn:aws:dynamodb:us-east-1:000000000000:table/{table}");
    let request = json!({"ResourceArn": arn, "Tags": [{"Key": key, "Value": value}]});
    client.call("TagResource", &request).unwrap().body
}

fn untag(client: &mut Client, table: &str, key: &str) {
    let arn = format!("arn:aws:dynamodb:us-east-1:000000000000:table/{table}");
    client.expect("UntagResource", &json!({"ResourceArn": arn, "TagKeys": [key]}));
}

fn put(client: &mut Client, table: &str) -> String {
    outcome(client, "PutItem", &json!({"TableName": table, "Item": {"pk": {"S": "a"}}}))
}

fn get(client: &mut Client, table: &str) -> String {
    outcome(client, "GetItem", &json!({"TableName": table, "Key": {"pk": {"S": "a"}}}))
}

#[test]
fn a_tag_is_a_rule_of_its_table() {
    let process = controlled(&[]);
    let mut client = process.client();
    create_table(&mut client, "events");
    create_table(&mut client, "others");
    tag(&mut client, "events", "zenobe:test:error", "operation=PutItem/DeleteItem times=2");
    let outcomes = [0; 3].map(|_| put(&mut client, "events"));
    assert_eq!(outcomes, ["InternalServerError", "InternalServerError", "OK"]);
    assert_eq!(
        (get(&mut client, "events"), put(&mut client, "others")),
        ("OK".into(), "OK".into())
    );
    let listed = control(&process, "GET", "faults", &Value::Null)["faults"][0].clone();
    assert_eq!(listed["tag"], "zenobe:test:error");
    assert_eq!(
        (&listed["id"], &listed["fired"], &listed["matched"]),
        (&Value::Null, &json!(2), &json!(3))
    );

    // Another tag leaves its counters alone; another value is another rule.
    tag(&mut client, "events", "team", "x");
    assert_eq!(put(&mut client, "events"), "OK");
    tag(&mut client, "events", "zenobe:test:error", "times=1");
    assert_eq!(get(&mut client, "events"), "InternalServerError");
    untag(&mut client, "events", "zenobe:test:error");
    assert_eq!(control(&process, "GET", "faults", &Value::Null)["faults"], json!([]));
    assert_eq!(get(&mut client, "events"), "OK");

    let refused = tag(&mut client, "events", "zenobe:test:slow", "");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.starts_with(
            "The tag zenobe:test:slow is not a valid fault rule: `slow` is not a kind"
        ),
        "{message}"
    );
}

/// What a table's rules say about its status holds from its creation to its deletion.
#[test]
fn a_table_is_created_and_deleted_slowly() {
    let process = controlled(&["--driven-clock"]);
    let mut client = process.client();
    let mut request = json!({
        "TableName": "slow",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
        "Tags": [{"Key": "zenobe:test:status", "Value": "delay=10s"}],
    });
    let name = json!({"TableName": "slow"});
    let status = |client: &mut Client| {
        client.call("DescribeTable", &name).unwrap().body["Table"]["TableStatus"].clone()
    };
    let advance = |seconds: u64| {
        let body = json!({"advance_ms": seconds * 1_000});
        crate::triggers::admin(&process, "POST", "/_zenobe/clock", &body);
    };
    client.expect("CreateTable", &request);
    assert_eq!(status(&mut client), "CREATING");
    advance(10);
    assert_eq!(status(&mut client), "ACTIVE");
    client.expect("DeleteTable", &name);
    assert_eq!(status(&mut client), "DELETING");
    advance(10);
    assert_eq!(status(&mut client), Value::Null);
    request["Tags"][0]["Value"] = json!("rate=0.5");
    assert_eq!(outcome(&mut client, "CreateTable", &request), "ValidationException");
}

#[test]
fn tags_survive_restarts_and_mean_nothing_without_test_control() {
    let directory = TemporaryDirectory::new("tagged");
    let data = ["--data", directory.path().to_str().unwrap(), "--durability", "os"];
    let process = serve(&data);
    let mut client = process.client();
    create_table(&mut client, "events");
    assert_eq!(tag(&mut client, "events", "zenobe:test:unavailable", ""), json!(null));
    assert_eq!(tag(&mut client, "events", "zenobe:test:slow", ""), json!(null), "nobody checks it");
    assert_eq!(put(&mut client, "events"), "OK");
    process.stop();
    let process = serve(&[&data[..], &["--test-control"]].concat());
    let mut client = process.client();
    assert_eq!(put(&mut client, "events"), "ServiceUnavailable");
    let fork = control(&process, "POST", "forks", &json!({}));
    assert_eq!(put(&mut super::client_of(&fork), "events"), "ServiceUnavailable");
}

/// Reads of a tagged table lag, and those of others don't.
#[test]
fn only_reads_of_the_tagged_table_are_stale() {
    let process = controlled(&["--driven-clock"]);
    let mut client = process.client();
    for table in ["events", "others"] {
        create_table(&mut client, table);
    }
    tag(&mut client, "events", "zenobe:test:stale", "delay=1s");
    crate::triggers::admin(&process, "POST", "/_zenobe/clock", &json!({"advance_ms": 5_000}));
    for (table, expected) in [("events", false), ("others", true)] {
        put(&mut client, table);
        let key = json!({"TableName": table, "Key": {"pk": {"S": "a"}}});
        let found = client.expect("GetItem", &key);
        assert_eq!(found.get("Item").is_some(), expected, "{table}");
    }
    crate::triggers::admin(&process, "POST", "/_zenobe/clock", &json!({"advance_ms": 1_000}));
    let key = json!({"TableName": "events", "Key": {"pk": {"S": "a"}}});
    assert!(client.expect("GetItem", &key).get("Item").is_some());
}
