//! Recording requests and replaying them.

use std::fs;

use serde_json::{Value, json};
use zenobe_testing::TemporaryDirectory;

use super::{add_fault, controlled, items};
use crate::commands::{check_refusal, zenobe};
use crate::triggers::{create_table, put};

#[test]
fn a_recording_is_replayed_and_differences_are_told() {
    let directory = TemporaryDirectory::new("recording");
    let path = directory.path().join("requests.jsonl");
    let file = path.to_str().unwrap();
    let process = controlled(&["--record", file]);
    let mut client = process.client();
    create_table(&mut client, "events");
    for number in 0..10 {
        put(&mut client, "events", &number.to_string(), number);
    }
    let missing = json!({"TableName": "none", "Key": {"pk": {"S": "a"}}});
    let reply = client.call("GetItem", &missing).unwrap();
    assert_eq!(reply.error(), Some("ResourceNotFoundException"));
    let iterator = json!({"ShardIterator": "x"});
    assert_eq!(client.call_streams("GetRecords", &iterator).unwrap().status, 400);
    process.stop();

    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 13);
    assert_eq!(lines[0]["operation"], "CreateTable");
    assert_eq!((&lines[1]["status"], &lines[1]["error"]), (&json!(200), &Value::Null));
    assert_eq!(lines[1]["body"]["TableName"], "events");
    assert_eq!(lines[11]["error"], "ResourceNotFoundException");
    assert_eq!(lines[11]["request_id"], reply.request_id());
    let times: Vec<f64> = lines.iter().map(|line| line["at_ms"].as_f64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");

    let other = controlled(&[]);
    let endpoint = other.endpoint();
    let replay = ["test", "replay", file, "--endpoint", &endpoint, "--speed"];
    let output = zenobe(&[&replay[..], &["100x"]].concat()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains(": 12 answered as recorded, 0 differently, 1 left out"), "{said}");
    assert_eq!(items(&mut other.client(), "events"), 10);

    // The table exists by now, and one write fails.
    add_fault(&other, "kind=throttle operation=PutItem times=1");
    let mut again = zenobe(&[&replay[..], &["max"]].concat());
    let output = again.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let table = "line 1: CreateTable was answered 200, now 400 ResourceInUseException";
    assert!(said.contains(table), "{said}");
    assert!(
        said.contains("line 2: PutItem was answered 200, now 400 ThrottlingException"),
        "{said}"
    );
    check_refusal(&mut again, 1, "1 of 12 answers differ from the recording");
}

#[test]
fn what_cannot_be_replayed_is_explained() {
    let directory = TemporaryDirectory::new("no-recording");
    let path = directory.path().join("requests.jsonl");
    let file = path.to_str().unwrap();
    let replay = ["test", "replay", file, "--endpoint", "http://127.0.0.1:1"];
    check_refusal(&mut zenobe(&replay), 1, "cannot read");
    fs::write(&path, "{}\n").unwrap();
    check_refusal(&mut zenobe(&replay), 1, "requests.jsonl:1: this is not a recorded request");
    let line = json!({"at_ms": 0, "operation": "ListTables", "body": {}, "status": 200});
    fs::write(&path, format!("{line}\n")).unwrap();
    check_refusal(&mut zenobe(&replay), 1, "cannot connect to 127.0.0.1:1");
}
