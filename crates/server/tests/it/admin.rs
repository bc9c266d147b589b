//! Admin requests: who may send them, and the driven clock.

use serde_json::{Value, json};
use zenobe_testing::{Client, ServerProcess};

use crate::commands::zenobe;
use crate::endpoint::{Answer, TestEndpoint};
use crate::triggers::{admin, create_table, serve};

#[test]
fn a_driven_clock_moves_when_told_and_items_expire() {
    let process = serve(&["--memory", "--driven-clock"]);
    let clock = |method: &str, body: Value| admin(&process, method, "/_zenobe/clock", &body);
    let (status, first) = clock("GET", Value::Null);
    assert_eq!((status, &first["driven"]), (200, &json!(true)));
    assert_eq!(clock("GET", Value::Null).1, first, "time stands still");
    let start_ms = first["now_ms"].as_u64().unwrap();

    let mut client = process.client();
    create_table(&mut client, "events");
    let endpoint = TestEndpoint::start(|_, _| Answer::Ok);
    let expired = json!({"userIdentity": {"type": ["Service"]}});
    let trigger =
        json!({"name": "gone", "table": "events", "url": endpoint.url(), "filters": [expired]});
    assert_eq!(admin(&process, "POST", "/_zenobe/triggers", &trigger).0, 200);
    let specification = json!({"Enabled": true, "AttributeName": "until"});
    client.expect(
        "UpdateTimeToLive",
        &json!({"TableName": "events", "TimeToLiveSpecification": specification}),
    );
    let until = (start_ms / 1000 + 60).to_string();
    let item = json!({"pk": {"S": "a"}, "until": {"N": until}});
    client.expect("PutItem", &json!({"TableName": "events", "Item": item}));
    let key = json!({"TableName": "events", "Key": {"pk": {"S": "a"}}});
    clock("POST", json!({"advance_ms": 50_000}));
    assert!(client.expect("GetItem", &key)["Item"].is_object());
    let (status, moved) = clock("POST", json!({"set_ms": start_ms + 120_000}));
    assert_eq!((status, &moved["now_ms"]), (200, &json!(start_ms + 120_000)));
    assert!(client.expect("GetItem", &key)["Item"].is_null(), "the item has expired");
    endpoint.wait_for(1);
    let record = &endpoint.accepted()[0];
    assert_eq!(record["eventName"], "REMOVE");
    assert_eq!(record["userIdentity"]["principalId"], "dynamodb.amazonaws.com");
}

#[test]
fn invalid_clock_requests_are_rejected() {
    let process = serve(&["--memory", "--driven-clock"]);
    let check = |method: &str, body: &str, status: u16, expected: &str| {
        let mut client = process.client();
        let reply = client.send(method, "/_zenobe/clock", &[], body.as_bytes()).unwrap();
        assert_eq!(reply.status, status, "{body}");
        let error = reply.body["error"].as_str().unwrap();
        assert!(error.contains(expected), "{error} lacks {expected}");
    };
    check("POST", "{", 400, "the body is not valid JSON");
    check("POST", "{}", 400, "expected {\"advance_ms\": n} or {\"set_ms\": n}");
    check("POST", r#"{"advance_ms": -1}"#, 400, "with a whole number");
    check("POST", r#"{"advance_ms": 1, "set_ms": 2}"#, 400, "expected");
    check("POST", r#"{"set_ms": 1}"#, 400, "time moves forward only");
    check("POST", r#"{"advance_ms": 18446744073709551615}"#, 400, "beyond the year 9999");
    check("DELETE", "", 405, "this path takes GET and POST");
    let process = serve(&["--memory"]);
    let (status, body) = admin(&process, "POST", "/_zenobe/clock", &json!({"advance_ms": 1}));
    let error = "the server was started without --driven-clock";
    assert_eq!((status, body), (409, json!({ "error": error })));
    assert_eq!(admin(&process, "GET", "/_zenobe/clock", &Value::Null).1["driven"], false);
    assert_eq!(admin(&process, "GET", "/_zenobe/absent", &Value::Null).0, 404);
}

#[test]
fn probes_are_answered_to_anybody() {
    let open = ["serve", "--memory", "--listen", "0.0.0.0:0", "--log", "error"];
    let process = ServerProcess::launch(zenobe(&open).env("ZENOBE_CREDENTIALS", "AKID:secret"));
    let address = ([127, 0, 0, 1], process.address().port()).into();
    let get = |method: &str, path: &str| {
        let reply = Client::new(address).send(method, path, &[], b"").unwrap();
        (reply.status, reply.body)
    };
    assert_eq!(get("GET", "/_zenobe/health/live"), (200, json!({"live": true})));
    let ready = json!({"ready": true, "reads": "ok", "writes": "ok", "store": "open"});
    assert_eq!(get("GET", "/_zenobe/health/ready"), (200, ready));
    assert_eq!(get("GET", "/_zenobe/health/other").0, 404);
    assert_eq!(get("POST", "/_zenobe/health/ready").0, 405);
}

#[test]
fn admin_requests_need_loopback_or_a_verified_signature() {
    let open = ["serve", "--memory", "--listen", "0.0.0.0:0", "--log", "error"];
    let reached = |process: &ServerProcess| {
        let address = format!("127.0.0.1:{}", process.address().port());
        Client::new(address.parse().unwrap())
    };
    let get = |client: &mut Client, headers: &[(&str, &str)]| {
        let reply = client.send("GET", "/_zenobe/triggers", headers, b"").unwrap();
        (reply.status, reply.body["error"].as_str().unwrap_or_default().to_owned())
    };
    let insecure = [&open[..], &["--insecure-accept-any-credentials"]].concat();
    let process = ServerProcess::launch(&mut zenobe(&insecure));
    let (status, error) = get(&mut reached(&process), &[]);
    assert_eq!(status, 403);
    assert!(error.starts_with("admin requests need a server on a loopback address"), "{error}");

    let process = ServerProcess::launch(zenobe(&open).env("ZENOBE_CREDENTIALS", "AKID:secret"));
    let (status, error) = get(&mut reached(&process), &[]);
    assert_eq!(status, 403, "{error}");
    let server = format!("http://127.0.0.1:{}", process.address().port());
    let list = |secret: &str| {
        let mut command = zenobe(&["trigger", "list", "--endpoint", &server]);
        command.env("AWS_ACCESS_KEY_ID", "AKID").env("AWS_SECRET_ACCESS_KEY", secret);
        command.env_remove("AWS_SESSION_TOKEN").env("AWS_REGION", "us-east-1");
        command.output().unwrap()
    };
    assert!(list("secret").status.success());
    assert!(!list("wrong").status.success());

    let process = serve(&["--memory"]);
    let own = process.endpoint();
    let (status, error) = get(&mut reached(&process), &[("Origin", &own)]);
    assert_eq!((status, error.as_str()), (403, "web pages may not send admin requests"));
    assert_eq!(get(&mut reached(&process), &[]).0, 200);
}
