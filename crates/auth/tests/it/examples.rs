//! Requests whose signatures AWS has published: the SigV4 test suite and the IAM example from the
//! reference guide.

use zenobe_auth::{Credential, Signer};

use crate::header_map;

struct Example {
    service: &'static str,
    method: &'static str,
    query: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
    signature: &'static str,
}

const HOST: (&str, &str) = ("host", "example.amazonaws.com");
const DATE: (&str, &str) = ("x-amz-date", "20150830T123600Z");

const EXAMPLES: &[Example] = &[
    // get-vanilla
    Example {
        service: "service",
        method: "GET",
        query: "",
        headers: &[HOST, DATE],
        body: "",
        signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    },
    // get-vanilla-query-order-key-case
    Example {
        service: "service",
        method: "GET",
        query: "Param2=value2&Param1=value1",
        headers: &[HOST, DATE],
        body: "",
        signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    },
    // post-vanilla
    Example {
        service: "service",
        method: "POST",
        query: "",
        headers: &[HOST, DATE],
        body: "",
        signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    },
    // post-x-www-form-urlencoded
    Example {
        service: "service",
        method: "POST",
        query: "",
        headers: &[("content-type", "application/x-www-form-urlencoded"), HOST, DATE],
        body: "Param1=value1",
        signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    },
    // The reference guide's request to IAM.
    Example {
        service: "iam",
        method: "GET",
        query: "Action=ListUsers&Version=2010-05-08",
        headers: &[
            ("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
            ("host", "iam.amazonaws.com"),
            DATE,
        ],
        body: "",
        signature: "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
    },
];

#[test]
fn published_signatures_are_reproduced() {
    let credential = Credential {
        access_key: "AKIDEXAMPLE".into(),
        secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
        session_token: None,
    };
    for example in EXAMPLES {
        let signer = Signer {
            credential: &credential,
            region: "us-east-1",
            service: example.service,
            date: DATE.1,
        };
        let headers = header_map(example.headers);
        let body = example.body.as_bytes();
        let value = signer.authorization(example.method, "/", example.query, &headers, body);
        let (_, signature) = value.rsplit_once("Signature=").unwrap();
        assert_eq!(signature, example.signature, "{} {}", example.method, example.query);
    }
}
