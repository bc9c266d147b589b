//! Verifying Signature Version 4.

use std::hint::black_box;
use std::time::{Duration, SystemTime};

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use zenobe_auth::{Credentials, ParseRules, PresentedSignature, RequestHead, Signer, sha256};

use crate::case::{Case, Measured};
use crate::requests;

const REGION: &str = "us-east-1";
/// One moment, as a signature spells it and in seconds since the epoch.
const DATE: &str = "20231114T221320Z";
const DATE_SECONDS: u64 = 1_700_000_000;

pub fn cases() -> Vec<Case> {
    vec![Case { name: "signature-verify", iterations: 512, prepare: verify }]
}

/// A signed PutItem. Valgrind's processor lacks the instructions for SHA-256, so the hash costs
/// more here than on most real processors.
fn verify() -> Measured {
    let credentials = Credentials::parse("AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG").expect("it is right");
    let body = requests::put_item().swap_remove(0);
    let headers = signed_headers(&credentials, &body);
    let now = || SystemTime::UNIX_EPOCH + Duration::from_secs(DATE_SECONDS);
    Box::new(move |iterations| {
        for _ in 0..iterations {
            let head = RequestHead { method: "POST", path: "/", query: "", headers: &headers };
            let rules =
                ParseRules { now, verifies: true, region: Some(REGION), ..ParseRules::default() };
            let signature = PresentedSignature::parse(black_box(&head), &rules);
            let signature = signature.expect("the signature is well formed");
            let verified = signature.verify(&head, &sha256(black_box(&body)), &credentials);
            assert!(verified.is_ok(), "{verified:?}");
        }
    })
}

/// The headers that SDKs send. All except the user agent are signed.
fn signed_headers(credentials: &Credentials, body: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("host", "localhost:8000"),
        ("content-type", "application/x-amz-json-1.0"),
        ("x-amz-target", "DynamoDB_20120810.PutItem"),
        ("x-amz-date", DATE),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let credential = credentials.get("AKIDEXAMPLE").expect("it was parsed");
    let signer = Signer { credential, region: REGION, service: "dynamodb", date: DATE };
    let authorization = signer.authorization("POST", "/", "", &headers, body);
    headers.insert(AUTHORIZATION, HeaderValue::try_from(authorization).expect("it is ASCII"));
    headers.insert("user-agent", HeaderValue::from_static("aws-sdk-rust/1.3 os/linux lang/rust"));
    headers
}
