//! PartiQL over HTTP: how a statement was executed, and statements that must not scan.

use serde_json::{Value, json};
use zenobe_testing::Client;

use crate::triggers::{create_table, serve};

fn execute(client: &mut Client, statement: &str) -> (u16, Value, Option<String>) {
    let reply = client.call("ExecuteStatement", &json!({ "Statement": statement })).unwrap();
    let plan = reply.header("x-zenobe-plan").map(str::to_owned);
    (reply.status, reply.body, plan)
}

#[test]
fn the_response_says_how_a_statement_was_executed() {
    let process = serve(&["--memory"]);
    let mut client = process.client();
    create_table(&mut client, "events");
    let mut check = |statement: &str, expected: &str| {
        let (status, body, plan) = execute(&mut client, statement);
        assert_eq!((status, plan.as_deref()), (200, Some(expected)), "{statement}: {body}");
    };
    check("INSERT INTO events VALUE {'pk': 'a', 'n': 1}", "PutItem; table=events; units=1");
    check("UPDATE events SET n = 2 WHERE pk = 'a'", "UpdateItem; table=events; units=1");
    check(
        "SELECT * FROM events WHERE pk = 'a'",
        "GetItem; table=events; evaluated=1; returned=1; units=0.5",
    );
    check(
        "SELECT * FROM events WHERE pk IN ['a', 'b'] AND n > 2",
        "Query; table=events; reads=2; filtered; evaluated=1; returned=0; units=1",
    );
    check(
        "SELECT * FROM events WHERE n = 2",
        "Scan; table=events; filtered; evaluated=1; returned=1; units=2",
    );
    check("DELETE FROM events WHERE pk = 'a'", "DeleteItem; table=events; units=1");
    let many = json!([{"Statement": "SELECT * FROM events WHERE pk = 'a'"}]);
    let reply = client.call("BatchExecuteStatement", &json!({ "Statements": many })).unwrap();
    assert_eq!(
        reply.header("x-zenobe-plan"),
        Some("BatchExecuteStatement; statements=1; units=0.5")
    );
    let reply = client.call("ExecuteTransaction", &json!({ "TransactStatements": many })).unwrap();
    assert_eq!(reply.header("x-zenobe-plan"), Some("TransactGetItems; statements=1; units=2"));
    let reply = client.call("Scan", &json!({"TableName": "events"})).unwrap();
    assert_eq!(reply.header("x-zenobe-plan"), None);
}

#[test]
fn statements_that_would_scan_can_be_refused() {
    let process = serve(&["--memory", "--refuse-scans"]);
    let mut client = process.client();
    create_table(&mut client, "events");
    let (status, body, plan) = execute(&mut client, "SELECT * FROM events WHERE n = 1");
    assert_eq!(status, 400);
    assert_eq!(body["__type"], "com.amazon.coral.service#AccessDeniedException");
    assert_eq!(
        body["Message"],
        "The statement would scan all of table events, and this server runs with --refuse-scans: give the partition \
         key with = or IN in the WHERE clause, or read an index whose partition key is known"
    );
    assert_eq!(plan.as_deref(), Some("Scan; table=events; filtered; refused"));
    assert_eq!(execute(&mut client, "SELECT * FROM events WHERE pk = 'a' AND n = 1").0, 200);
    let reply = client.call("Scan", &json!({"TableName": "events"})).unwrap();
    assert!(reply.is_success(), "the operation Scan says what it does");
}
