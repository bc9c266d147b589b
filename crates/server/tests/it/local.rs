//! `zenobe local`: what tools configured for DynamoDB Local send, and what they wait for.

use std::process::Command;

use serde_json::{Value, json};
use zenobe_testing::{Connection, Reply, ServerProcess, TemporaryDirectory};

use crate::commands::{check_refusal, check_usage_error, zenobe};

fn local(arguments: &[&str]) -> Command {
    zenobe(&[&["local"], arguments].concat())
}

fn start(arguments: &[&str]) -> ServerProcess {
    ServerProcess::launch(&mut local(&[&["-port", "0"], arguments].concat()))
}

/// A request from a tool, with no signature or half of one.
fn send(
    process: &ServerProcess,
    operation: &str,
    authorization: Option<&str>,
    body: &Value,
) -> Reply {
    let body = body.to_string();
    let authorization =
        authorization.map(|value| format!("Authorization: {value}\r\n")).unwrap_or_default();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.0\r\n{authorization}\
         X-Amz-Target: DynamoDB_20120810.{operation}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    Connection::open(process.address()).send(request.as_bytes()).reply()
}

fn call(
    process: &ServerProcess,
    operation: &str,
    authorization: Option<&str>,
    body: &Value,
) -> Value {
    let reply = send(process, operation, authorization, body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.body
}

fn table() -> Value {
    json!({
        "TableName": "Music",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    })
}

fn key(access_key: &str, region: &str) -> String {
    format!("AWS4-HMAC-SHA256 Credential={access_key}/20260101/{region}/dynamodb/aws4_request")
}

/// Probes such as jest-dynamodb's wait for this status. The body is what DynamoDB Local 3.3.1 sends.
#[test]
fn the_root_answers_as_dynamodb_local_does() {
    let process = start(&["-inMemory", "-sharedDb"]);
    let mut connection = Connection::open(process.address());
    let reply = connection.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").reply();
    assert_eq!(reply.status, 400);
    assert_eq!(reply.header("content-type"), Some("application/x-amz-json-1.0"));
    assert_eq!(
        reply.text(),
        "{\"__type\":\"com.amazonaws.dynamodb.v20120810#MissingAuthenticationToken\",\"Message\":\"Request must \
         contain either a valid (registered) AWS access key ID or X.509 certificate.\"}"
    );
}

#[test]
fn requests_need_no_signature_and_arns_are_those_of_dynamodb_local() {
    let process = start(&["-inMemory", "-sharedDb"]);
    assert!(
        process.first_lines(5)[4].ends_with("--region us-east-1"),
        "{:?}",
        process.first_lines(5)
    );
    let created = call(&process, "CreateTable", None, &table());
    let arn = "arn:aws:dynamodb:ddblocal:000000000000:table/Music";
    assert_eq!(created["TableDescription"]["TableArn"], arn);
    let by_arn = call(&process, "DescribeTable", None, &json!({"TableName": arn}));
    assert_eq!(by_arn["Table"]["TableName"], "Music");
    call(&process, "ListTagsOfResource", None, &json!({"ResourceArn": arn}));
    for authorization in [None, Some("nonsense".to_owned()), Some(key("other", "eu-west-1"))] {
        let listed = call(&process, "ListTables", authorization.as_deref(), &json!({}));
        assert_eq!(listed["TableNames"], json!(["Music"]));
    }
}

#[test]
fn without_a_shared_database_each_key_and_region_has_its_own() {
    let process = start(&["-inMemory"]);
    call(&process, "CreateTable", Some(&key("one", "us-east-1")), &table());
    let tables = |authorization: Option<&str>| {
        call(&process, "ListTables", authorization, &json!({}))["TableNames"].clone()
    };
    assert_eq!(tables(Some(&key("one", "us-east-1"))), json!(["Music"]));
    assert_eq!(tables(Some(&key("two", "us-east-1"))), json!([]));
    assert_eq!(tables(Some(&key("one", "eu-west-1"))), json!([]));
    assert_eq!(tables(None), json!([]));
}

#[test]
fn the_command_line_of_the_java_program_works_and_its_directory_may_hold_its_files() {
    let directory = TemporaryDirectory::new("local");
    std::fs::write(directory.path().join("shared-local-instance.db"), "SQLite").unwrap();
    let path = directory.path().to_str().unwrap();
    let java = [
        "-Djava.library.path=./DynamoDBLocal_lib",
        "-Xmx512m",
        "-jar",
        "DynamoDBLocal.jar",
        "-sharedDb",
        "-dbPath",
        path,
        "-optimizeDbBeforeStartup",
        "-disableTelemetry",
        "-port",
        "0",
    ];
    let process = ServerProcess::launch(zenobe(&java).env("DDB_LOCAL_TELEMETRY", "0"));
    call(&process, "CreateTable", None, &table());
    process.stop();
    assert!(directory.path().join("zenobe-data/FORMAT").exists());
    let process = ServerProcess::launch(&mut zenobe(&java));
    assert_eq!(call(&process, "ListTables", None, &json!({}))["TableNames"], json!(["Music"]));
}

#[test]
fn pages_of_allowed_origins_are_answered() {
    let process = start(&["-inMemory", "-cors", "http://localhost:3000,http://app.example"]);
    let preflight = |origin: &str| {
        let request = format!(
            "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\n\
             Access-Control-Request-Method: POST\r\n\r\n"
        );
        Connection::open(process.address()).send(request.as_bytes()).reply()
    };
    let allowed = preflight("http://app.example");
    assert_eq!(allowed.header("access-control-allow-origin"), Some("http://app.example"));
    assert_eq!(preflight("http://evil.example").header("access-control-allow-origin"), None);
}

/// In a container it must be reachable, and DynamoDB Local never requires credentials.
#[test]
fn the_address_and_other_options_come_from_the_environment() {
    let mut command = local(&["-inMemory", "-port", "0"]);
    let process = ServerProcess::launch(
        command.env("ZENOBE_LISTEN", "0.0.0.0:8000").env("ZENOBE_REGION", "eu-central-1"),
    );
    assert!(process.address().ip().is_unspecified());
    let created = call(&process, "CreateTable", None, &table());
    let arn = created["TableDescription"]["TableArn"].as_str().unwrap().to_owned();
    assert!(arn.contains(":eu-central-1:"), "{arn}");
}

#[test]
fn an_index_is_seen_while_it_is_created() {
    let process = start(&["-inMemory", "-sharedDb", "-delayTransientStatuses"]);
    call(&process, "CreateTable", None, &table());
    let update = json!({
        "TableName": "Music",
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "g", "AttributeType": "S"},
        ],
        "GlobalSecondaryIndexUpdates": [{"Create": {
            "IndexName": "index", "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }}],
    });
    call(&process, "UpdateTable", None, &update);
    let described = call(&process, "DescribeTable", None, &json!({"TableName": "Music"}));
    assert_eq!(described["Table"]["GlobalSecondaryIndexes"][0]["IndexStatus"], "CREATING");
}

#[test]
fn invalid_flags_are_rejected() {
    let check = |arguments: &[&str], expected: &str| {
        check_usage_error(&mut local(arguments), expected);
    };
    check(&["-inMemory", "-dbPath", "."], "'--inMemory' cannot be used with '--dbPath <PATH>'");
    check(&["-optimizeDbBeforeStartup"], "--dbPath <PATH>");
    check(&["-inMemroy"], "a similar argument exists: '--inMemory'");
    let mut both = local(&["-inMemory", "--data", "x"]);
    check_refusal(&mut both, 2, "--memory and --data exclude each other");
    let version = zenobe(&["-jar", "DynamoDBLocal.jar", "-version"]).output().unwrap();
    assert!(String::from_utf8(version.stdout).unwrap().starts_with("zenobe "));
}
