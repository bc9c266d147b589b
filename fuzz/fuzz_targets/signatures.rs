//! Signatures: a request's head (method, path and query on the first line, then one header per
//! line) and its body after an empty line. Every signature is rejected or well formed, none can be
//! forged, and what a client signs is accepted.

#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use zenobe_auth::{
    AuthError, Credential, Credentials, ParseRules, PresentedSignature, RequestHead, Signer, sha256,
};

const DATE: &str = "20260101T120000Z";
/// No input is signed with it, so none may pass.
const SECRET: &str = "not in any seed";

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().splitn(3, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (method, path, query) = (word(), word(), word());
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_str(value.trim());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    let head = RequestHead { method, path, query, headers: &headers };
    let verified = verify(&head, body);
    assert!(verified.is_err(), "a forged signature is accepted");
    check_signed(method, path, query, headers.clone(), body);
});

fn credential() -> Credential {
    Credential { access_key: "AKID".into(), secret_key: SECRET.into(), session_token: None }
}

fn verify(head: &RequestHead<'_>, body: &str) -> Result<(), AuthError> {
    let credentials = Credentials::parse(&format!("AKID:{SECRET}")).expect("a credential");
    let presented = PresentedSignature::parse(head, &ParseRules::default())?;
    presented.verify(head, &sha256(body.as_bytes()), &credentials)
}

/// Signs the request as a client does. Signatures in queries are another kind.
fn check_signed(method: &str, path: &str, query: &str, mut headers: HeaderMap, body: &str) {
    if query.to_ascii_lowercase().contains("x-amz-") || query.contains('%') {
        return;
    }
    for name in ["authorization", "date", "x-amz-security-token", "x-amz-content-sha256"] {
        headers.remove(name);
    }
    headers.insert("host", HeaderValue::from_static("localhost"));
    headers.insert("x-amz-date", HeaderValue::from_static(DATE));
    let credential = credential();
    let signer =
        Signer { credential: &credential, region: "eu-west-1", service: "dynamodb", date: DATE };
    let value = signer.authorization(method, path, query, &headers, body.as_bytes());
    let Ok(value) = HeaderValue::from_str(&value) else { return };
    headers.insert("authorization", value);
    let head = RequestHead { method, path, query, headers: &headers };
    assert_eq!(verify(&head, body), Ok(()), "{head:?}");
    // Any later change is noticed.
    let changed = format!("{body}x");
    assert!(verify(&head, &changed).is_err(), "another body is accepted");
}
