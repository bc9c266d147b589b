//! Web pages and host names: what a browser can be tricked into doing to a server on its machine.

use serde_json::json;
use zenobe_testing::{Connection, Reply, ServerProcess, api_request, wait_until};

use crate::commands::zenobe;
use crate::support::{ECHO, TestOptions, TestServer};
use crate::triggers::serve;

const LIST: &str = "DynamoDB_20120810.ListTables";

/// ListTables as an SDK or a page sends it.
fn list(process: &ServerProcess, host: &str, more_headers: &str) -> Reply {
    let request = String::from_utf8(api_request(LIST, more_headers, b"{}")).unwrap();
    let request = request.replace("Host: localhost", &format!("Host: {host}"));
    reached(process).send(request.as_bytes()).reply()
}

fn send(process: &ServerProcess, line: &str, headers: &str) -> Reply {
    reached(process).send(format!("{line} HTTP/1.1\r\n{headers}\r\n").as_bytes()).reply()
}

fn reached(process: &ServerProcess) -> Connection {
    Connection::open(([127, 0, 0, 1], process.address().port()).into())
}

#[test]
fn on_loopback_a_rebound_name_reaches_nothing_but_the_health_check() {
    let process = serve(&["--memory"]);
    for host in ["localhost:8000", "127.0.0.1:8000", "[::1]:8000", "localhost"] {
        assert_eq!(list(&process, host, "").status, 200, "{host}");
    }
    let refused = list(&process, "rebound.example.org:8000", "");
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.text(),
        "{\"__type\":\"com.amazon.coral.service#AccessDeniedException\",\"Message\":\"the host name \
         `rebound.example.org` is not one of this server's: call it by localhost or a loopback \
         address, or start it with --allowed-host rebound.example.org\"}"
    );
    let rebound = "Host: rebound.example.org\r\n";
    for line in ["GET /_zenobe/triggers", "POST /_zenobe/clock", "GET /metrics", "OPTIONS /"] {
        let reply = send(&process, line, rebound);
        assert_eq!(reply.status, 403, "{line}");
        assert!(reply.text().starts_with("{\"error\":\"the host name "), "{}", reply.text());
    }
    assert_eq!(send(&process, "GET /", rebound).status, 200);

    let process = serve(&["--memory", "--allowed-host", "db.example.org"]);
    assert_eq!(list(&process, "db.example.org", "").status, 200);
    assert_eq!(list(&process, "rebound.example.org", "").status, 403);
}

#[test]
fn pages_of_foreign_origins_are_not_answered_and_those_of_allowed_ones_are() {
    let process = serve(&["--memory", "--cors-origin", "http://localhost:3000"]);
    let preflight = |origin: &str| {
        let asked = "Access-Control-Request-Method: POST\r\n\
            Access-Control-Request-Headers: content-type,x-amz-target,authorization\r\n";
        send(&process, "OPTIONS /", &format!("Host: localhost\r\nOrigin: {origin}\r\n{asked}"))
    };
    let foreign = preflight("http://example.org");
    assert_eq!(foreign.status, 403);
    assert_eq!(foreign.header("access-control-allow-origin"), None);
    let foreign = list(&process, "localhost", "Origin: http://example.org\r\n");
    assert_eq!(foreign.status, 403);
    assert!(foreign.text().contains("--cors-origin http://example.org"), "{}", foreign.text());

    let allowed = "http://localhost:3000";
    let granted = preflight(allowed);
    assert_eq!(granted.status, 200);
    assert_eq!(granted.header("access-control-allow-origin"), Some(allowed));
    assert_eq!(granted.header("vary"), Some("origin"));
    let answered = list(&process, "localhost", &format!("Origin: {allowed}\r\n"));
    assert_eq!(
        (answered.status, answered.header("access-control-allow-origin")),
        (200, Some(allowed))
    );
    // Admin requests are closed to all pages, allowed or not.
    let admin = send(
        &process,
        "GET /_zenobe/triggers",
        &format!("Host: localhost\r\nOrigin: {allowed}\r\n"),
    );
    assert_eq!(admin.status, 403);
}

#[test]
fn beyond_loopback_private_names_are_known_and_signatures_protect_the_rest() {
    let open = ["serve", "--memory", "--listen", "0.0.0.0:0", "--log", "error"];
    let insecure = [&open[..], &["--insecure-accept-any-credentials"]].concat();
    let process = ServerProcess::launch(&mut zenobe(&insecure));
    for host in ["dynamodb:8000", "host.docker.internal:8000", "10.1.2.3:8000", "localhost:8000"] {
        assert_eq!(list(&process, host, "").status, 200, "{host}");
    }
    assert_eq!(list(&process, "rebound.example.org", "").status, 403);

    let process = ServerProcess::launch(zenobe(&open).env("ZENOBE_CREDENTIALS", "AKID:secret"));
    let reply = list(&process, "db.example.org", "");
    assert_eq!(reply.status, 400, "it is only the signature that is wrong: {}", reply.text());
    let listed = [&open[..], &["--allowed-host", "db.example.org"]].concat();
    let process = ServerProcess::launch(zenobe(&listed).env("ZENOBE_CREDENTIALS", "AKID:secret"));
    assert_eq!(list(&process, "db.example.org", "").status, 400);
    assert_eq!(list(&process, "other.example.org", "").status, 403);
}

#[test]
fn a_peer_has_a_bounded_number_of_connections() {
    let mut options = TestOptions::default();
    options.connections.connections_per_peer_max = Some(2);
    let server = TestServer::start_with(options);
    let (mut first, mut second) = (server.connect(), server.connect());
    assert_eq!(first.call(ECHO, b"{}").status, 200);
    assert_eq!(second.call(ECHO, b"{}").status, 200);
    assert!(server.connect().is_closed(), "the third is one too many");
    drop(first);
    let answers = || {
        let mut connection = server.connect();
        // The server may close it before or while the request is sent.
        let sent = connection.try_send(&api_request(ECHO, "", b"{}"));
        sent.is_ok() && connection.stream().peek(&mut [0]).is_ok_and(|count| count == 1)
    };
    wait_until(answers);
}

#[test]
fn the_number_of_tables_and_the_wording_are_options() {
    let process = serve(&["--memory", "--max-tables", "1", "--wording", "newer"]);
    let mut client = process.client();
    let table = |name: &str| {
        json!({
            "TableName": name,
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        })
    };
    client.expect("CreateTable", &table("one"));
    let refused = client.call("CreateTable", &table("two")).unwrap();
    assert_eq!(refused.error(), Some("LimitExceededException"), "{}", refused.body);
    let put = json!({"TableName": "one", "Item": {"pk": {"S": "a"}}, "ReturnValues": "ALL_NEW"});
    let refused = client.call("PutItem", &put).unwrap();
    let message = refused.body["message"].as_str().unwrap();
    assert!(message.starts_with("1 validation error detected: "), "{message}");
}
