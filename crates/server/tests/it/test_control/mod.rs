//! A server that tests control.

mod copies;
mod faults;
mod lateness;
mod recording;
mod tags;

use serde_json::{Value, json};
use zenobe_testing::{Client, ServerProcess};

use crate::commands::{check_usage_error, zenobe};
use crate::triggers::{admin, serve};

fn controlled(arguments: &[&str]) -> ServerProcess {
    serve(&[&["--memory", "--test-control"], arguments].concat())
}

/// A request below `/_zenobe/test/` that must succeed.
fn control(process: &ServerProcess, method: &str, path: &str, body: &Value) -> Value {
    let (status, answer) = admin(process, method, &format!("/_zenobe/test/{path}"), body);
    assert_eq!(status, 200, "{method} {path} {body}: {answer}");
    answer
}

/// A request that must fail with this status; returns why.
fn refused(process: &ServerProcess, method: &str, path: &str, body: &Value, status: u16) -> String {
    let (found, answer) = admin(process, method, &format!("/_zenobe/test/{path}"), body);
    assert_eq!(found, status, "{method} {path} {body}: {answer}");
    answer["error"].as_str().unwrap().to_owned()
}

fn add_fault(process: &ServerProcess, rule: &str) -> u64 {
    control(process, "POST", "faults", &json!({ "rule": rule }))["id"].as_u64().unwrap()
}

/// A client of a fork.
fn client_of(fork: &Value) -> Client {
    let endpoint = fork["endpoint"].as_str().unwrap();
    Client::new(endpoint.strip_prefix("http://").unwrap().parse().unwrap())
}

fn items(client: &mut Client, table: &str) -> u64 {
    client.expect("Scan", &json!({"TableName": table, "ConsistentRead": true}))["Count"]
        .as_u64()
        .unwrap()
}

fn tables(client: &mut Client) -> Value {
    client.expect("ListTables", &json!({}))["TableNames"].clone()
}

/// The type of an answer's error, or `OK`.
fn outcome(client: &mut Client, operation: &str, body: &Value) -> String {
    let Ok(reply) = client.call(operation, body) else { return "dropped".to_owned() };
    match reply.body["__type"].as_str() {
        Some(name) => name.rsplit('#').next().unwrap().to_owned(),
        None => "OK".to_owned(),
    }
}

#[test]
fn only_a_server_that_was_told_so_is_controlled() {
    let process = serve(&["--memory"]);
    let why = refused(&process, "POST", "reset", &json!({}), 409);
    assert_eq!(why, "the server was started without --test-control");
    let check = |arguments: &[&str], expected: &str| {
        check_usage_error(&mut zenobe(&[&["serve", "--port", "0"], arguments].concat()), expected);
    };
    check(&["--memory", "--fault", "kind=drop"], "--fault needs --test-control");
    check(&["--memory", "--record", "/tmp/x"], "--record needs --test-control");
    let open = ["--memory", "--test-control", "--insecure-accept-any-credentials"];
    check(&[&open[..], &["--listen", "0.0.0.0:0"]].concat(), "other machines can reach 0.0.0.0:0");
    check(&["--test-control", "--store", "postgres://x/y"], "not for a --store");
    check(&["--memory", "--test-control", "--fault", "kind=slow"], "`slow` is not a kind");
}

#[test]
fn what_is_no_request_is_explained() {
    let process = controlled(&[]);
    let check = |method: &str, path: &str, body: Value, status: u16, expected: &str| {
        let why = refused(&process, method, path, &body, status);
        assert!(why.contains(expected), "{why}");
    };
    check("GET", "other", Value::Null, 404, "there are snapshots, restore, reset");
    check("GET", "reset", Value::Null, 405, "this path takes POST");
    check("PUT", "faults", Value::Null, 405, "GET, POST and DELETE");
    check("POST", "snapshots", json!({}), 400, "expected {\"name\": \"…\"}");
    check("POST", "snapshots", json!({"name": "a b"}), 400, "`a b` is not a valid snapshot name");
    check("POST", "restore", json!({"snapshot": "none"}), 404, "there is no snapshot `none`");
    check("DELETE", "snapshots/none", Value::Null, 404, "there is no snapshot `none`");
    check("POST", "forks", json!({"snapshot": "none"}), 404, "there is no snapshot `none`");
    check("DELETE", "forks/7", Value::Null, 404, "there is no fork 7");
    check("DELETE", "faults/x", Value::Null, 404, "there is no fault x");
    check("POST", "faults", json!({"kind": "latency"}), 400, "kind=latency needs a delay");
    check("POST", "reset", json!({"table": "none"}), 404, "there is no table none");
    check("POST", "reset", json!({"tables": "a"}), 400, "expected {\"table\": \"…\"}");
    check("POST", "rollover", json!({"table": "none"}), 404, "there is no table none");
}

/// The commands, as a shell script uses them.
#[test]
fn commands_do_the_same_as_requests() {
    let process = controlled(&["--driven-clock"]);
    let run = |arguments: &str| {
        let endpoint = process.endpoint();
        let words: Vec<&str> = arguments.split(' ').chain(["--endpoint", &endpoint]).collect();
        let output = zenobe(&[&["test"], &words[..]].concat()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim_end().to_owned();
        match output.status.success() {
            true => text(output.stdout),
            false => text(output.stderr),
        }
    };
    let mut client = process.client();
    crate::triggers::create_table(&mut client, "events");
    assert_eq!(run("snapshot take seeded"), "took snapshot seeded");
    assert_eq!(run("snapshot list"), "seeded");
    let fork = run("fork new --snapshot seeded");
    assert_eq!(run("fork list"), format!("1  {fork}"));
    assert_eq!(tables(&mut client_of(&json!({ "endpoint": fork }))), json!(["events"]));
    assert_eq!(run("fork end 1"), "ended fork 1");
    assert_eq!(run("fork end 1"), "zenobe: there is no fork 1");
    let rule = "kind=throttle table=events operation=GetItem";
    assert_eq!(run(&format!("fault add {rule}")), format!("1  {rule}  fired 0 of 0"));
    let key = json!({"TableName": "events", "Key": {"pk": {"S": "a"}}});
    assert_eq!(outcome(&mut client, "GetItem", &key), "ThrottlingException");
    assert_eq!(run("fault list"), format!("1  {rule}  fired 1 of 1"));
    assert_eq!(run("fault remove 1"), "removed rule 1");
    assert_eq!(run("fault clear"), "removed all rules");
    assert_eq!(run("rollover events"), "the stream of events has new shards");
    let before = admin(&process, "GET", "/_zenobe/clock", &Value::Null).1["now_ms"].clone();
    run("clock --advance 1h");
    let after = admin(&process, "GET", "/_zenobe/clock", &Value::Null).1["now_ms"].clone();
    assert_eq!(after.as_u64().unwrap() - before.as_u64().unwrap(), 3_600_000);
    assert_eq!(run("reset --table events"), "table events is empty");
    assert_eq!(run("restore seeded"), "the database is as in snapshot seeded");
    let restored = admin(&process, "GET", "/_zenobe/clock", &Value::Null).1["now_ms"].clone();
    assert_eq!(restored, before, "the time is restored as well");
    assert_eq!(run("snapshot remove seeded"), "removed snapshot seeded");
    assert_eq!(run("reset"), "the database is empty");
    assert_eq!(tables(&mut client), json!([]));
    let tomorrow = before.as_u64().unwrap() / 1_000 + 86_400;
    let iso8601 = |at_ms| zenobe_engine::clock::iso8601_without_zone(at_ms) + "Z";
    for (set, shown) in [(tomorrow.to_string(), 0), (iso8601(tomorrow * 1_000 + 5), 5)] {
        let expected = iso8601(tomorrow * 1_000 + shown);
        assert_eq!(run(&format!("clock --set {set}")), expected);
    }
    assert_eq!(run(&format!("clock --set {tomorrow}")), "zenobe: time moves forward only");
    let clock = |arguments: &[&str], expected: &str| {
        check_usage_error(&mut zenobe(&[&["test", "clock"], arguments].concat()), expected);
    };
    clock(&[], "--advance <TIME>");
    clock(&["--advance", "1h", "--set", "1893456000"], "cannot be used with");
    clock(
        &["--set", "tomorrow"],
        "`tomorrow` is not a time such as 2026-11-16T08:00:00Z or 1794816000",
    );
}
