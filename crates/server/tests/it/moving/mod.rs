//! `zenobe move`: from a directory to a PostgreSQL and back, and while the server is in use.

pub mod content;
mod offline;
mod online;
mod permission;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use zenobe_testing::{Client, Postgres, ServerProcess, TemporaryDirectory};

use crate::commands::zenobe;

/// A server on a data directory or a PostgreSQL.
fn serve(place: &str) -> ServerProcess {
    ServerProcess::launch(&mut serve_command(place))
}

fn serve_command(place: &str) -> Command {
    let option = if place.contains("://") { "--store" } else { "--data" };
    let common = ["serve", "--listen", "127.0.0.1:0", "--log", "info", "--stream-shards", "2"];
    zenobe(&[&common[..], &[option, place]].concat())
}

fn move_command(from: &str, to: &str) -> Command {
    zenobe(&["move", "--from", from, "--to", to])
}

/// A directory to move from and a database to move to, both new.
struct Places {
    here: String,
    there: String,
    _directory: TemporaryDirectory,
}

impl Places {
    fn new(name: &str) -> Places {
        let directory = TemporaryDirectory::new(name);
        let here = text(&directory.path().join("here")).to_owned();
        Places { here, there: Postgres::shared().database(), _directory: directory }
    }

    fn both(&self) -> (&str, &str) {
        (&self.here, &self.there)
    }
}

fn run(command: &mut Command) -> Output {
    command.output().expect("the command runs")
}

/// Runs a command that must succeed, and returns what it printed.
pub fn succeed(command: &mut Command) -> String {
    let output = run(command);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Expects a refusal whose message contains these texts.
pub fn refuse(command: &mut Command, expected: &[&str]) {
    let output = run(command);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it succeeds: {error}");
    for text in expected {
        assert!(error.contains(text), "{error} lacks {text}");
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("temporary directories have plain names")
}

/// The name of a database in the messages: without parameters.
fn name(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

/// How many rows a PostgreSQL holds by now.
fn rows(url: &str) -> u64 {
    let database = name(url).rsplit('/').next().unwrap_or_default();
    let exists = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'zenobe_kv'";
    if Postgres::shared().execute(database, exists).trim() == "0" {
        return 0;
    }
    let count = Postgres::shared().execute(database, "SELECT count(*) FROM zenobe_kv");
    count.trim().parse().expect("a number")
}

pub fn create_plain_table(client: &mut Client, table: &str) {
    client.expect(
        "CreateTable",
        &json!({
            "TableName": table,
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        }),
    );
}

/// 25 items of 15 KB in each batch, so that moving them takes a while.
fn put_large_items(client: &mut Client, table: &str, batches: usize) {
    for batch in 0..batches {
        let put = |number: usize| {
            let item = json!({
                "pk": {"S": format!("{batch}/{number}")}, "text": {"S": "x".repeat(15_000)},
            });
            json!({"PutRequest": {"Item": item}})
        };
        let puts: Vec<_> = (0..25).map(put).collect();
        client.expect("BatchWriteItem", &json!({"RequestItems": {table: puts}}));
    }
}

/// All items of a table or an index, in the order of a scan.
pub fn scan(client: &mut Client, request: &Value) -> Vec<Value> {
    let mut request = request.clone();
    let mut items = Vec::new();
    loop {
        let page = client.expect("Scan", &request);
        items.extend(page["Items"].as_array().expect("a list").iter().cloned());
        match &page["LastEvaluatedKey"] {
            Value::Null => return items,
            key => request["ExclusiveStartKey"] = key.clone(),
        }
    }
}
