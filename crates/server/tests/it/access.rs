//! Signatures over HTTP, and which tables a caller sees.

use std::time::SystemTime;

use zenobe_auth::{Credential, Credentials, Signer, Timestamp};
use zenobe_testing::{AUTHORIZATION, Reply};

use crate::support::{ECHO, NAMESPACE, TestOptions, TestServer};

fn signed(server: &TestServer, secret: &str, region: &str, target: &str, date: &str) -> Reply {
    let headers = [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", target)];
    signed_request(server, "POST /", secret, region, date, &headers, "{}")
}

fn signed_request(
    server: &TestServer,
    line: &str,
    secret: &str,
    region: &str,
    date: &str,
    more_headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let credential =
        Credential { access_key: "AKID".into(), secret_key: secret.into(), session_token: None };
    let headers = [&[("host", "localhost"), ("x-amz-date", date)], more_headers].concat();
    let headers = hyper::HeaderMap::from_iter(headers.iter().map(|(name, value)| {
        (name.parse::<hyper::header::HeaderName>().unwrap(), value.parse().unwrap())
    }));
    let signer = Signer { credential: &credential, region, service: "dynamodb", date };
    let (method, path) = line.split_once(' ').unwrap();
    let authorization = signer.authorization(method, path, "", &headers, body.as_bytes());
    let mut request = format!("{line} HTTP/1.1\r\nauthorization: {authorization}\r\n");
    for (name, value) in &headers {
        request.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
    }
    request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    server.connect().send(request.as_bytes()).reply()
}

fn now() -> String {
    Timestamp::from_system_time(SystemTime::now()).to_string()
}

fn verifying_server(namespaces_from_credentials: bool) -> TestServer {
    TestServer::start_with(TestOptions {
        credentials: Some(Credentials::parse("AKID:secret").unwrap()),
        namespaces_from_credentials,
        ..TestOptions::default()
    })
}

#[test]
fn signatures_are_verified_where_credentials_are_given() {
    let server = verifying_server(false);
    let check = |reply: Reply, expected: &str| {
        assert!(reply.text().contains(expected), "{} lacks {expected}", reply.text());
        assert_eq!(reply.status == 200, expected == "{}");
    };
    check(signed(&server, "secret", "us-east-1", ECHO, &now()), "{}");
    check(
        signed(&server, "wrong", "us-east-1", ECHO, &now()),
        "#InvalidSignatureException\",\"message\":\"The request signature we calculated does not",
    );
    check(
        signed(&server, "secret", "eu-west-1", ECHO, &now()),
        "Credential should be scoped to a valid region, not 'eu-west-1'. ",
    );
    check(signed(&server, "secret", "us-east-1", ECHO, "20200101T000000Z"), "Signature expired: ");
    // What anybody may send to a server that does not verify.
    check(server.call(ECHO, b"{}"), "Signature expired: ");
}

#[test]
fn signatures_come_before_everything_that_takes_work() {
    let server = verifying_server(false);
    let send = |secret: &str, encoding: &str, body: &str| {
        let headers = [
            ("content-type", "application/x-amz-json-1.0"),
            ("x-amz-target", ECHO),
            ("content-encoding", encoding),
        ];
        signed_request(&server, "POST /", secret, "us-east-1", &now(), &headers, body)
    };
    for (encoding, body) in [("gzip", "no gzip"), ("identity", "no json"), ("unknown", "{}")] {
        let reply = send("wrong", encoding, body);
        assert!(reply.text().contains("#InvalidSignatureException"), "{body}: {}", reply.text());
    }
    assert_eq!(send("secret", "gzip", "no gzip").status, 500);
    assert_eq!(send("secret", "identity", "no json").status, 200, "the handler does not mind");
}

#[test]
fn those_without_a_key_are_refused_without_memory_for_their_bodies() {
    let server = verifying_server(false);
    // A signature with an unknown key.
    let authorization = AUTHORIZATION.replace("20260101", &now()[..8]);
    let request = |announced: usize| {
        format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             X-Amz-Date: {}\r\nX-Amz-Target: {ECHO}\r\nAuthorization: {}\r\n\
             Content-Length: {announced}\r\n\r\n",
            now(),
            authorization
                .replace("SignedHeaders=host", "SignedHeaders=host;x-amz-date;x-amz-target"),
        )
    };
    let mut connection = server.connect();
    let body = vec![b'{'; 1 << 20];
    for _ in 0..2 {
        let reply = connection.send(request(body.len()).as_bytes()).send(&body).reply();
        assert!(reply.text().contains("#UnrecognizedClientException"), "{}", reply.text());
        assert_eq!(reply.header("connection"), Some("keep-alive"));
    }
    // More than the server would read in vain.
    let mut connection = server.connect();
    let reply = connection.send(request(1 << 40).as_bytes()).reply();
    assert!(reply.text().contains("#UnrecognizedClientException"), "{}", reply.text());
    assert!(connection.is_closed());
}

#[test]
fn metrics_beyond_loopback_are_for_those_who_sign() {
    let server = verifying_server(false);
    let reply = server.connect().send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").reply();
    assert_eq!(reply.status, 403);
    assert_eq!(reply.text(), "{\"error\":\"Request is missing Authentication Token\"}\n");
    let ask =
        |secret| signed_request(&server, "GET /metrics", secret, "us-east-1", &now(), &[], "");
    assert_eq!(ask("wrong").status, 403);
    let reply = ask("secret");
    assert!(reply.text().contains("\nzenobe_connections "), "{}", reply.text());
}

#[test]
fn namespaces_are_the_servers_or_the_callers() {
    let one_for_all = TestServer::start().call(NAMESPACE, b"{}");
    assert_eq!(one_for_all.text(), r#"{"000000000000":"us-east-1"}"#);
    let server = verifying_server(true);
    let own = signed(&server, "secret", "eu-west-1", NAMESPACE, &now());
    assert_eq!(own.text(), r#"{"AKID":"eu-west-1"}"#);
}
