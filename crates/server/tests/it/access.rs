//! Signatures over HTTP, and whose tables a caller sees.

use std::time::SystemTime;

use zenobe_auth::{Credential, Credentials, Signer, Timestamp};

use crate::support::{ECHO, NAMESPACE, Reply, TestOptions, TestServer};

fn signed(server: &TestServer, secret: &str, region: &str, target: &str, date: &str) -> Reply {
    let credential =
        Credential { access_key: "AKID".into(), secret_key: secret.into(), session_token: None };
    let headers = hyper::HeaderMap::from_iter(
        [
            ("host", "localhost"),
            ("content-type", "application/x-amz-json-1.0"),
            ("x-amz-date", date),
            ("x-amz-target", target),
        ]
        .map(|(name, value)| {
            (name.parse::<hyper::header::HeaderName>().unwrap(), value.parse().unwrap())
        }),
    );
    let signer = Signer { credential: &credential, region, service: "dynamodb", date };
    let authorization = signer.authorization("POST", "/", "", &headers, b"{}");
    let mut request = format!("POST / HTTP/1.1\r\nauthorization: {authorization}\r\n");
    for (name, value) in &headers {
        request.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
    }
    request.push_str("content-length: 2\r\n\r\n{}");
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
        assert_eq!(reply.status() == 200, expected == "{}");
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
fn namespaces_are_the_servers_or_the_callers() {
    let one_for_all = TestServer::start().call(NAMESPACE, b"{}");
    assert_eq!(one_for_all.text(), r#"{"000000000000":"us-east-1"}"#);
    let server = verifying_server(true);
    let own = signed(&server, "secret", "eu-west-1", NAMESPACE, &now());
    assert_eq!(own.text(), r#"{"AKID":"eu-west-1"}"#);
}
