//! The server accepts what a client signs, and rejects it after any change.

use http::HeaderMap;
use proptest::prelude::*;
use zenobe_auth::{
    AuthError, Credential, Credentials, ParseRules, PresentedSignature, RequestHead, Signer, sha256,
};

use crate::header_map;

const DATE: &str = "20260101T120000Z";

fn credential(token: Option<&str>) -> Credential {
    Credential {
        access_key: "AKID".into(),
        secret_key: "s/e+c".into(),
        session_token: token.map(str::to_owned),
    }
}

fn signed_headers(token: Option<&str>, query: &str, body: &[u8]) -> HeaderMap {
    let mut headers = header_map(&[
        ("host", "localhost:8000"),
        ("x-amz-date", DATE),
        ("x-amz-target", "DynamoDB_20120810.ListTables"),
    ]);
    if let Some(token) = token {
        headers.insert("x-amz-security-token", token.parse().unwrap());
    }
    let credential = credential(token);
    let signer =
        Signer { credential: &credential, region: "eu-west-1", service: "dynamodb", date: DATE };
    let value = signer.authorization("POST", "/", query, &headers, body);
    headers.insert("authorization", value.parse().unwrap());
    headers
}

fn verify(
    query: &str,
    headers: &HeaderMap,
    body: &[u8],
    credentials: &str,
) -> Result<(), AuthError> {
    let head = RequestHead { method: "POST", path: "/", query, headers };
    let credentials = Credentials::parse(credentials).unwrap();
    PresentedSignature::parse(&head, &ParseRules::default())?.verify(
        &head,
        &sha256(body),
        &credentials,
    )
}

#[test]
fn a_wrong_secret_body_header_or_signature_is_a_mismatch() {
    let headers = signed_headers(None, "", b"{}");
    let is_mismatch = |result| matches!(result, Err(AuthError::SignatureMismatch { .. }));
    assert_eq!(verify("", &headers, b"{}", "AKID:s/e+c"), Ok(()));
    assert!(is_mismatch(verify("", &headers, b"{}", "AKID:other")));
    assert!(is_mismatch(verify("", &headers, b"[]", "AKID:s/e+c")));
    assert!(is_mismatch(verify("a=b", &headers, b"{}", "AKID:s/e+c")));

    let mut changed = headers.clone();
    changed.insert("x-amz-target", "DynamoDB_20120810.DeleteTable".parse().unwrap());
    assert!(is_mismatch(verify("", &changed, b"{}", "AKID:s/e+c")));

    let authorization = headers["authorization"].to_str().unwrap();
    for signature in ["", "0", "zz", "é", "00"] {
        let (start, _) = authorization.rsplit_once("Signature=").unwrap();
        let value =
            http::HeaderValue::from_bytes(format!("{start}Signature={signature}").as_bytes());
        let mut changed = headers.clone();
        changed.insert("authorization", value.unwrap());
        assert!(verify("", &changed, b"{}", "AKID:s/e+c").is_err(), "{signature}");
    }
}

#[test]
fn a_mismatch_says_what_should_have_been_signed() {
    let headers = signed_headers(None, "", b"{}");
    let text = verify("", &headers, b"{}", "AKID:other").unwrap_err().to_string();
    assert!(text.starts_with(
        "The request signature we calculated does not match the signature you provided. \
         Check your AWS Secret Access Key and signing method. \
         Consult the service documentation for details.\n\n\
         The Canonical String for this request should have been\n'POST\n/\n\nhost:localhost:8000\n"
    ));
}

#[test]
fn a_mismatch_does_not_show_a_large_head() {
    let query = "a".repeat(5_000);
    let headers = signed_headers(None, &query, b"{}");
    let text = verify(&query, &headers, b"{}", "AKID:other").unwrap_err().to_string();
    assert!(text.ends_with("Consult the service documentation for details."), "{text}");
}

/// Signs without the header `name`, but sends it.
fn with_unsigned(name: &'static str, value: &str) -> HeaderMap {
    let mut headers = header_map(&[("host", "localhost:8000"), ("x-amz-date", DATE)]);
    let credential = credential(None);
    let signer =
        Signer { credential: &credential, region: "eu-west-1", service: "dynamodb", date: DATE };
    let authorization = signer.authorization("POST", "/", "", &headers, b"{}");
    headers.insert("authorization", authorization.parse().unwrap());
    headers.insert(name, value.parse().unwrap());
    headers
}

#[test]
fn the_headers_of_aws_must_be_signed() {
    for name in ["x-amz-target", "x-amz-security-token", "x-amz-anything"] {
        let error = verify("", &with_unsigned(name, "x"), b"{}", "AKID:s/e+c").unwrap_err();
        assert_eq!(error, AuthError::HeaderNotSigned { name: name.to_owned() });
        assert_eq!(
            error.to_string(),
            format!("'{name}' must be a 'SignedHeader' in the AWS Authorization.")
        );
    }
    for name in ["x-amzn-trace-id", "user-agent"] {
        assert_eq!(verify("", &with_unsigned(name, "x"), b"{}", "AKID:s/e+c"), Ok(()), "{name}");
    }
}

#[test]
fn repeated_names_of_signed_headers_are_one() {
    let headers = signed_headers(None, "", b"{}");
    let mut repeated = headers.clone();
    let authorization = headers["authorization"].to_str().unwrap();
    let names = format!("SignedHeaders={}", "host;".repeat(100));
    let value = authorization.replace("SignedHeaders=", &names);
    repeated.insert("authorization", value.parse().unwrap());
    assert_eq!(verify("", &repeated, b"{}", "AKID:s/e+c"), Ok(()));
}

#[test]
fn unknown_keys_come_before_the_signature_and_tokens_after_it() {
    let plain = signed_headers(None, "", b"{}");
    assert_eq!(verify("", &plain, b"{}", "OTHER:x"), Err(AuthError::UnknownAccessKey));
    assert_eq!(verify("", &plain, b"{}", "AKID:s/e+c:token"), Err(AuthError::SessionToken));
    let temporary = signed_headers(Some("token"), "", b"{}");
    assert_eq!(verify("", &temporary, b"{}", "AKID:s/e+c:token"), Ok(()));
    assert_eq!(verify("", &temporary, b"{}", "AKID:s/e+c"), Err(AuthError::SessionToken));
    assert_eq!(
        AuthError::UnknownAccessKey.to_string(),
        "The security token included in the request is invalid."
    );
    assert_eq!(
        AuthError::SessionToken.to_string(),
        "The security token included in the request is invalid"
    );
}

proptest! {
    #[test]
    fn every_body_and_query_verifies(body: Vec<u8>, query in "[ -~&&[^#]]{0,30}") {
        prop_assume!(!query.contains("X-Amz-Algorithm"));
        let headers = signed_headers(None, &query, &body);
        prop_assert_eq!(verify(&query, &headers, &body, "AKID:s/e+c"), Ok(()));
    }

    #[test]
    fn no_header_value_panics(value in "(AWS4-)?[ -~]{0,80}", date in "[ -~]{0,20}", query in "[ -~]{0,60}") {
        let headers = header_map(&[("authorization", value.trim()), ("x-amz-date", date.trim())]);
        let _ = verify(&query, &headers, b"", "AKID:s/e+c");
        let _ = verify(&query, &HeaderMap::new(), b"", "AKID:s/e+c");
    }
}
