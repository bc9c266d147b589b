//! Triggers with endpoints that fail, hang, accept in part and recover.

use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use zenobe_testing::{Client, ServerProcess, TemporaryDirectory, wait_until};

#[cfg(target_os = "linux")]
use crate::commands::threads;
use crate::commands::{check_refusal, zenobe};
use crate::endpoint::{Answer, TestEndpoint};

pub fn serve(arguments: &[&str]) -> ServerProcess {
    let common = ["serve", "--listen", "127.0.0.1:0", "--log", "error"];
    ServerProcess::launch(&mut zenobe(&[&common[..], arguments].concat()))
}

pub fn create_table(client: &mut Client, name: &str) {
    let specification = json!({"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"});
    client.expect(
        "CreateTable",
        &json!({
            "TableName": name,
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
            "StreamSpecification": specification,
        }),
    );
}

pub fn put(client: &mut Client, table: &str, pk: &str, n: u64) {
    let item = json!({"pk": {"S": pk}, "n": {"N": n.to_string()}});
    client.expect("PutItem", &json!({"TableName": table, "Item": item}));
}

fn add_trigger(process: &ServerProcess, name: &str, endpoint: &TestEndpoint, more: &[&str]) {
    let (server, url) = (process.endpoint(), endpoint.url());
    let arguments =
        ["trigger", "add", name, "--table", "events", "--url", &url, "--endpoint", &server];
    let fast = ["--backoff-ms", "5", "--backoff-max-ms", "50"];
    let output = zenobe(&[&arguments[..], &fast, more].concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

pub fn admin(process: &ServerProcess, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let reply = process.client().send(method, path, &[], body.as_bytes()).unwrap();
    (reply.status, reply.body)
}

/// Endpoints and filters must not block expiry and trimming. A server without triggers has no
/// thread for them.
#[cfg(target_os = "linux")]
#[test]
fn triggers_run_on_a_thread_of_their_own() {
    let process = serve(&["--memory"]);
    let count = |name: &str| threads(&process).iter().filter(|thread| *thread == name).count();
    wait_until(|| count("zenobe-upkeep") == 1);
    assert_eq!(count("zenobe-triggers"), 0);
    for name in ["one", "two"] {
        let trigger = json!({"name": name, "table": "none", "url": "http://127.0.0.1:9/"});
        assert_eq!(admin(&process, "POST", "/_zenobe/triggers", &trigger).0, 200);
        // A thread names itself once it runs.
        wait_until(|| count("zenobe-triggers") == 1);
        assert_eq!(count("zenobe-upkeep"), 1);
    }
}

/// Where namespaces come from credentials, callers choose the values of two labels.
#[test]
fn callers_cannot_forge_metrics_with_the_names_of_their_namespaces() {
    let process = serve(&["--memory", "--namespaces-from-credentials"]);
    let authorization = "AWS4-HMAC-SHA256 \
        Credential=a\"b\\c/20260101/eu\"}/dynamodb/aws4_request, SignedHeaders=host, Signature=00";
    let headers = [("Authorization", authorization), ("X-Amz-Date", "20260101T000000Z")];
    let trigger = json!({"name": "t", "table": "none", "url": "http://127.0.0.1:9/"}).to_string();
    let mut client = process.client();
    let added = client.send("POST", "/_zenobe/triggers", &headers, trigger.as_bytes()).unwrap();
    assert_eq!(added.status, 200, "{}", added.body);
    let metrics = client.send("GET", "/metrics", &[], b"").unwrap();
    let metrics = String::from_utf8(metrics.bytes).unwrap();
    let labels = r#"trigger="t",account="a\"b\\c",region="eu\"}""#;
    let line = format!("zenobe_trigger_records_delivered_total{{{labels}}} 0");
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
}

fn status(process: &ServerProcess, name: &str) -> Value {
    let (status, body) = admin(process, "GET", &format!("/_zenobe/triggers/{name}"), &Value::Null);
    assert_eq!(status, 200, "{body}");
    body
}

#[test]
fn an_endpoint_that_fails_hangs_and_answers_in_part_gets_everything_in_order() {
    let process = serve(&["--memory"]);
    let mut client = process.client();
    create_table(&mut client, "events");
    let endpoint = TestEndpoint::start(|call, records| match (call, call % 6) {
        (_, 0) => Answer::Status(500),
        (1, _) => Answer::Hang(Duration::from_secs(15)),
        (_, 1) => Answer::Hang(Duration::ZERO),
        (_, 2) => Answer::FailsAt(records.len() / 2),
        (_, 3) => Answer::FailsAt(0),
        _ => Answer::Ok,
    });
    // An answer that a busy machine delays for longer than this would be delivered twice.
    let options = ["--batch-size", "20", "--timeout-ms", "5000", "--report-batch-item-failures"];
    add_trigger(&process, "trying", &endpoint, &options);
    for n in 1..=30 {
        for item in 0..8 {
            put(&mut client, "events", &format!("item-{item}"), n);
        }
    }
    endpoint.wait_for(240);
    for item in 0..8 {
        let expected: Vec<u64> = (1..=30).collect();
        assert_eq!(endpoint.numbers_of(&format!("item-{item}")), expected);
    }
    let record = &endpoint.accepted()[0];
    assert_eq!(record["eventSource"], "aws:dynamodb");
    assert_eq!(record["eventName"], "INSERT");
    let arn = record["eventSourceARN"].as_str().unwrap();
    assert!(
        arn.starts_with("arn:aws:dynamodb:us-east-1:000000000000:table/events/stream/"),
        "{arn}"
    );

    wait_until(|| status(&process, "trying")["records_delivered"] == 240);
    let status = status(&process, "trying");
    assert!(status["deliveries_failed"].as_u64().unwrap() > 0, "{status}");
    let metrics = process.client().send("GET", "/metrics", &[], b"").unwrap();
    let metrics = String::from_utf8(metrics.bytes).unwrap();
    let labels = "trigger=\"trying\",account=\"000000000000\",region=\"us-east-1\"";
    let line = format!("zenobe_trigger_records_delivered_total{{{labels}}} 240");
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
}

#[test]
fn no_writer_waits_for_an_endpoint_that_hangs() {
    let process = serve(&["--memory"]);
    let mut client = process.client();
    create_table(&mut client, "events");
    let [is_called, is_released] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let (called, released) = (is_called.clone(), is_released.clone());
    let endpoint = TestEndpoint::start(move |_, _| {
        called.store(true, Ordering::SeqCst);
        wait_until(|| released.load(Ordering::SeqCst));
        Answer::Ok
    });
    add_trigger(&process, "hanging", &endpoint, &["--timeout-ms", "600000"]);
    put(&mut client, "events", "item", 1);
    wait_until(|| is_called.load(Ordering::SeqCst));
    for n in 2..=240 {
        put(&mut client, "events", "item", n);
    }
    is_released.store(true, Ordering::SeqCst);
    endpoint.wait_for(240);
    assert_eq!(endpoint.numbers_of("item"), (1..=240).collect::<Vec<u64>>());
}

#[test]
fn poison_ends_in_the_dead_letter_file_and_everything_else_is_delivered() {
    let directory = TemporaryDirectory::new("dead-letters");
    let letters = directory.path().to_str().unwrap();
    let process = serve(&["--memory", "--stream-shards", "1", "--dead-letter-directory", letters]);
    let mut client = process.client();
    create_table(&mut client, "events");
    for n in 1..=40 {
        put(&mut client, "events", &format!("item-{}", n % 4), n);
    }
    let is_poison = |record: &Value| {
        ["7", "23", "24"].contains(&record["dynamodb"]["NewImage"]["n"]["N"].as_str().unwrap())
    };
    let endpoint = TestEndpoint::start(move |_, records| match records.iter().any(is_poison) {
        true => Answer::Status(503),
        false => Answer::Ok,
    });
    let file = directory.path().join("dead.jsonl");
    let options = ["--bisect-on-error", "--maximum-retry-attempts", "1", "--dead-letter"];
    let options = [&options[..], &[file.to_str().unwrap()]].concat();
    add_trigger(&process, "poisoned", &endpoint, &options);
    endpoint.wait_for(37);
    let numbers: Vec<Vec<u64>> =
        (0..4).map(|item| endpoint.numbers_of(&format!("item-{item}"))).collect();
    for (item, numbers) in numbers.iter().enumerate() {
        let expected = (1..=40).filter(|n| *n as usize % 4 == item && ![7, 23, 24].contains(n));
        assert_eq!(*numbers, expected.collect::<Vec<u64>>());
    }
    wait_until(|| status(&process, "poisoned")["records_dead_lettered"] == 3);
    let lines = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    for (line, n) in lines.iter().zip(["7", "23", "24"]) {
        assert_eq!(line["payload"]["Records"][0]["dynamodb"]["NewImage"]["n"]["N"], n);
        assert_eq!(line["requestContext"]["condition"], "RetryAttemptsExhausted");
        assert_eq!(line["requestContext"]["approximateInvokeCount"], 2);
        assert_eq!(line["responseContext"]["statusCode"], 503);
        assert_eq!(line["DDBStreamBatchInfo"]["batchSize"], 1);
    }
}

#[test]
fn added_triggers_write_files_only_below_the_directory_set_aside_for_them() {
    let directory = TemporaryDirectory::new("set-aside");
    let (data, letters) = (directory.path().join("data"), directory.path().join("letters"));
    let arguments = ["--data", data.to_str().unwrap(), "--durability", "os"];
    let outside = directory.path().join("outside.jsonl");
    let add = |process: &ServerProcess, name: &str, file: &str| {
        let trigger = json!({
            "name": name, "table": "events", "url": "http://127.0.0.1:9/", "dead_letter": file,
        });
        let (status, body) = admin(process, "POST", "/_zenobe/triggers", &trigger);
        (status, body["error"].as_str().unwrap_or_default().to_owned())
    };
    let process = serve(&arguments);
    let (code, error) = add(&process, "one", outside.to_str().unwrap());
    assert_eq!(code, 400);
    assert!(error.contains("--dead-letter-directory"), "{error}");
    assert_eq!(
        admin(&process, "GET", "/_zenobe/triggers", &Value::Null).1,
        json!({"triggers": []})
    );
    process.stop();

    let set_aside = ["--dead-letter-directory", letters.to_str().unwrap()];
    let process = serve(&[&arguments[..], &set_aside].concat());
    for file in [outside.to_str().unwrap(), "../outside.jsonl", "file:/etc/x"] {
        let (code, error) = add(&process, "one", file);
        assert_eq!(code, 400, "{file}");
        assert!(error.contains(" is not below "), "{error}");
    }
    assert_eq!(add(&process, "one", "one.jsonl").0, 200);
    process.stop();

    // The stored trigger is not valid here, which stops nothing else from running.
    let process = serve(&arguments);
    let broken = status(&process, "one");
    assert_eq!(broken["state"], "not valid");
    assert_eq!(broken["trigger"]["dead_letter"], "file:one.jsonl");
    assert!(broken["last_problem"].as_str().unwrap().contains("--dead-letter-directory"));
    let (_, listed) = admin(&process, "GET", "/_zenobe/triggers", &Value::Null);
    assert_eq!(listed["triggers"], json!([broken]));
    let removed = admin(&process, "DELETE", "/_zenobe/triggers/one", &Value::Null);
    assert_eq!(removed, (200, json!({"removed": "one"})));
    assert_eq!(
        admin(&process, "GET", "/_zenobe/triggers", &Value::Null).1,
        json!({"triggers": []})
    );
}

#[test]
fn messages_of_an_endpoint_are_shortened() {
    let process = serve(&["--memory"]);
    let mut client = process.client();
    create_table(&mut client, "events");
    let endpoint = TestEndpoint::start(|_, _| {
        Answer::Says(format!(
            "{{\"errorType\":\"E\",\"errorMessage\":\"{}\"}}",
            "x".repeat(100_000)
        ))
    });
    add_trigger(&process, "talkative", &endpoint, &[]);
    put(&mut client, "events", "item", 1);
    wait_until(|| status(&process, "talkative")["last_problem"].is_string());
    let problem = status(&process, "talkative")["last_problem"].as_str().unwrap().to_owned();
    assert!(problem.starts_with("the function failed: \"xxx"), "{problem}");
    assert!(problem.len() < 600 && problem.ends_with(" more bytes)"), "{problem}");
}

#[test]
fn delivery_goes_on_after_a_restart() {
    let directory = TemporaryDirectory::new("resume");
    let data = directory.path().join("data");
    let arguments = ["--data", data.to_str().unwrap(), "--durability", "os"];
    // After five deliveries the endpoint is down until the server has restarted.
    let is_up = Arc::new(AtomicBool::new(false));
    let up = is_up.clone();
    let endpoint =
        TestEndpoint::start(move |call, _| match call < 5 || up.load(Ordering::SeqCst) {
            true => Answer::Ok,
            false => Answer::Status(500),
        });
    let process = serve(&arguments);
    let mut client = process.client();
    create_table(&mut client, "events");
    add_trigger(
        &process,
        "resumed",
        &endpoint,
        &["--batch-size", "3", "--starting-position", "LATEST"],
    );
    wait_until(|| status(&process, "resumed")["state"] == "delivering");
    for n in 1..=60 {
        put(&mut client, "events", &format!("item-{}", n % 5), n);
    }
    wait_until(|| status(&process, "resumed")["deliveries_failed"].as_u64().unwrap() > 2);
    drop(process);

    is_up.store(true, Ordering::SeqCst);
    let process = serve(&arguments);
    endpoint.wait_for(60);
    wait_until(|| status(&process, "resumed")["iterator_age_ms"] == 0);
    for item in 0..5 {
        let mut numbers = endpoint.numbers_of(&format!("item-{item}"));
        // Deliveries right before the kill may be repeated, in order.
        numbers.dedup();
        let expected: Vec<u64> = (1..=60).filter(|n| n % 5 == item).collect();
        let mut complete = numbers.clone();
        complete.sort_unstable();
        complete.dedup();
        assert_eq!(complete, expected);
        assert_eq!(numbers.last(), expected.last());
    }
    let output = zenobe(&["trigger", "remove", "resumed", "--endpoint"])
        .arg(process.endpoint())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "removed resumed\n");
    process.stop();
    let process = serve(&arguments);
    let (_, listed) = admin(&process, "GET", "/_zenobe/triggers", &Value::Null);
    assert_eq!(listed, json!({"triggers": []}));
}

#[test]
fn a_configured_trigger_delivers_what_its_patterns_let_pass_across_shards_that_roll_over() {
    let endpoint = TestEndpoint::start(|_, _| Answer::Ok);
    let directory = TemporaryDirectory::new("configured");
    let file = directory.path().join("zenobe.toml");
    let text = format!(
        "memory = true\nstream-shard-records = 10\ndriven-clock = true\n\
         [[trigger]]\nname = 'odd'\ntable = 'events'\nurl = '{}'\nbatching-window-ms = 50\n\
         filters = ['{{\"dynamodb\":{{\"NewImage\":{{\"kind\":{{\"S\":[\"odd\"]}}}}}}}}']\n",
        endpoint.url()
    );
    fs::write(&file, text).unwrap();
    let process = serve(&["--config", file.to_str().unwrap()]);
    let mut client = process.client();
    create_table(&mut client, "events");
    for n in 1..=100_u64 {
        let kind = if n % 2 == 1 { "odd" } else { "even" };
        let pk = format!("item-{}", n % 6);
        let item = json!({"pk": {"S": pk}, "n": {"N": n.to_string()}, "kind": {"S": kind}});
        client.expect("PutItem", &json!({"TableName": "events", "Item": item}));
        if n % 20 == 0 {
            // Moving the clock completes what is due: full shards roll over.
            admin(&process, "POST", "/_zenobe/clock", &json!({"advance_ms": 1000}));
        }
    }
    endpoint.wait_for(50);
    for item in 0..6 {
        let expected: Vec<u64> = (1..=100).filter(|n| n % 6 == item && n % 2 == 1).collect();
        assert_eq!(endpoint.numbers_of(&format!("item-{item}")), expected);
    }
    wait_until(|| status(&process, "odd")["records_filtered"] == 50);
    let shards = status(&process, "odd")["shards"].as_array().unwrap().len();
    assert!(shards > 4, "{}", status(&process, "odd"));
    // The window lets records gather.
    assert!(endpoint.bodies().len() < 50, "{}", endpoint.bodies().len());
    let server = process.endpoint();
    let mut remove = zenobe(&["trigger", "remove", "odd", "--endpoint", &server]);
    check_refusal(&mut remove, 1, "is in the server's configuration file");
}

#[test]
fn commands_explain_what_is_wrong() {
    let process = serve(&["--memory"]);
    let server = process.endpoint();
    let add = |more: &[&str]| {
        let arguments = ["trigger", "add", "a", "--table", "events", "--endpoint", &server];
        zenobe(&[&arguments[..], more].concat())
    };
    check_refusal(&mut add(&["--url", "https://x/"]), 1, "needs TLS");
    check_refusal(
        &mut add(&["--url", "http://x/", "--batch-size", "0"]),
        1,
        "`batch_size` must be",
    );
    check_refusal(
        &mut add(&["--url", "http://x/", "--filter", "{"]),
        1,
        "filter 1: the pattern is",
    );
    let mut absent = zenobe(&["trigger", "status", "absent", "--endpoint", &server]);
    check_refusal(&mut absent, 1, "there is no trigger `absent`");
    let mut nobody = zenobe(&["trigger", "list", "--endpoint", "http://127.0.0.1:9"]);
    check_refusal(&mut nobody, 1, "is the server running?");
    let listed = zenobe(&["trigger", "list", "--endpoint", &server]).stdin(Stdio::null()).output();
    assert!(
        String::from_utf8(listed.unwrap().stdout).unwrap().starts_with("there are no triggers")
    );
    for help in [&["trigger", "add"][..], &["trigger", "list"], &["stream", "tail"]] {
        let output = zenobe(&[help, &["--help"]].concat()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("Example"), "{text}");
    }
}

#[test]
fn records_that_are_too_old_go_to_the_dead_letter_endpoint() {
    let process = serve(&["--memory", "--driven-clock"]);
    let mut client = process.client();
    create_table(&mut client, "events");
    let endpoint = TestEndpoint::start(|_, _| Answer::Status(500));
    let dead_letters = TestEndpoint::start(|call, _| match call {
        // The destination need not be up at once, either.
        0 => Answer::Status(500),
        _ => Answer::Ok,
    });
    let options = ["--maximum-record-age-seconds", "60", "--dead-letter", &dead_letters.url()];
    add_trigger(&process, "aging", &endpoint, &options);
    put(&mut client, "events", "a", 1);
    wait_until(|| status(&process, "aging")["deliveries_failed"].as_u64().unwrap() > 0);
    assert_eq!(status(&process, "aging")["last_problem"], "the endpoint answered 500");
    admin(&process, "POST", "/_zenobe/clock", &json!({"advance_ms": 62_000}));
    wait_until(|| status(&process, "aging")["records_dead_lettered"] == 1);
    let letters = dead_letters.bodies();
    assert_eq!(letters.len(), 2);
    assert_eq!(letters[1]["requestContext"]["condition"], "MaximumRecordAgeExceeded");
    assert_eq!(letters[1]["payload"]["Records"][0]["dynamodb"]["Keys"]["pk"]["S"], "a");
}

#[test]
fn records_lost_to_retention_by_a_stuck_trigger_are_counted() {
    // An open shard loses old records; a closed shard goes as a whole.
    check_retention("999999", "records_trimmed", 200);
    check_retention("3600", "shards_trimmed", 1);
}

fn check_retention(rollover_seconds: &str, counter: &str, expected: u64) {
    let options = ["--stream-shards", "1", "--stream-rollover-seconds", rollover_seconds];
    let process = serve(&[&["--memory", "--driven-clock"][..], &options].concat());
    let mut client = process.client();
    create_table(&mut client, "events");
    let is_up = Arc::new(AtomicBool::new(false));
    let up = is_up.clone();
    let endpoint = TestEndpoint::start(move |_, _| match up.load(Ordering::SeqCst) {
        true => Answer::Ok,
        false => Answer::Status(500),
    });
    // One page of the stream fits in the trigger's memory; the rest waits in the stream.
    for batch in 0..48 {
        let put = |n: u64| {
            let item = json!({"pk": {"S": format!("{batch}-{n}")}, "n": {"N": n.to_string()}});
            json!({"PutRequest": {"Item": item}})
        };
        let puts: Vec<Value> = (0..25).map(put).collect();
        client.expect("BatchWriteItem", &json!({"RequestItems": {"events": puts}}));
    }
    add_trigger(&process, "stuck", &endpoint, &["--batch-size", "500"]);
    wait_until(|| status(&process, "stuck")["deliveries_failed"].as_u64().unwrap() > 0);
    let day_ms = 24 * 60 * 60 * 1000;
    admin(&process, "POST", "/_zenobe/clock", &json!({"advance_ms": day_ms + 60_000}));
    assert!(status(&process, "stuck")["iterator_age_ms"].as_u64().unwrap() > day_ms);
    is_up.store(true, Ordering::SeqCst);
    put(&mut client, "events", "last", 1);
    wait_until(|| endpoint.numbers_of("last") == [1]);
    wait_until(|| status(&process, "stuck")[counter] == expected);
    assert_eq!(status(&process, "stuck")["records_delivered"], 1001);
}

#[test]
fn a_trigger_without_a_stream_is_added_with_a_hint() {
    let process = serve(&["--memory"]);
    let server = process.endpoint();
    let add = |name: &str, table: &str| {
        let url = "http://127.0.0.1:9/";
        let arguments =
            ["trigger", "add", name, "--table", table, "--url", url, "--endpoint", &server];
        let output = zenobe(&arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let missing = add("a", "evnets");
    assert!(missing.contains("\nnote: there is no table `evnets`; deliveries begin"), "{missing}");
    let mut client = process.client();
    client.expect(
        "CreateTable",
        &json!({
            "TableName": "silent",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        }),
    );
    let silent = add("b", "silent");
    assert!(silent.contains("\nnote: the table `silent` has no stream; "), "{silent}");
    create_table(&mut client, "events");
    assert_eq!(add("c", "events").lines().count(), 1);
}
