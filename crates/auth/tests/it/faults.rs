//! Each fault of a signature: its type, its text, and its rank among the others.

use std::time::{Duration, SystemTime};

use zenobe_auth::{ParseRules, PresentedSignature, RequestHead};

use crate::header_map;

const GOOD: &str = "AWS4-HMAC-SHA256 Credential=a/20130609/r/dynamodb/aws4_request, \
                    SignedHeaders=host;x-amz-date, Signature=00";
const DATE: &str = "20130609T095204Z";

/// 20130609T100015Z, the server's clock in the recorded responses.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_370_772_015)
}

/// The access key and the region of a good signature, or the fault of a bad one.
fn parse(
    query: &str,
    headers: &[(&str, &str)],
    rules: &ParseRules<'_>,
) -> Result<(String, String), String> {
    let headers = header_map(headers);
    let head = RequestHead { method: "POST", path: "/", query, headers: &headers };
    let signature = PresentedSignature::parse(&head, rules)
        .map_err(|error| format!("{}: {error}", error.error_type().name()))?;
    let scope = signature.scope();
    Ok((scope.access_key.to_owned(), scope.region.to_owned()))
}

fn strict() -> ParseRules<'static> {
    ParseRules { now, verifies: true, region: Some("r"), ..ParseRules::default() }
}

fn check(query: &str, headers: &[(&str, &str)], expected: &str) {
    assert_eq!(parse(query, headers, &strict()).expect_err(query), expected);
}

fn check_header(authorization: &str, expected: &str) {
    check("", &[("authorization", authorization), ("x-amz-date", DATE)], expected);
}

#[test]
fn a_good_header_exposes_its_scope() {
    let headers = [("authorization", GOOD), ("x-amz-date", DATE)];
    let rules = strict();
    assert_eq!(parse("", &headers, &rules).unwrap(), ("a".into(), "r".into()));
    // Any order, no spaces, and the plain date header pass as well.
    let compact = "AWS4-HMAC-SHA256 Signature=00,SignedHeaders=Host,\
                   Credential=a/20130609/r/dynamodb/aws4_request";
    parse("", &[("authorization", compact), ("date", DATE)], &rules).unwrap();
}

#[test]
fn the_first_of_several_equal_parts_counts() {
    let two = "AWS4-HMAC-SHA256 Credential=a/20130609/r/dynamodb/aws4_request, Credential=b, \
               Credential, SignedHeaders=host, Signature=00";
    let headers = [("authorization", two), ("x-amz-date", DATE)];
    assert_eq!(parse("", &headers, &strict()).unwrap(), ("a".into(), "r".into()));
    for (first, is_given) in [("Credential=", false), ("Credential", true), ("Credentials=", true)]
    {
        let headers = GOOD.replace(" Credential=", &format!(" {first}, Credential="));
        let headers = [("authorization", headers.as_str()), ("x-amz-date", DATE)];
        assert_eq!(parse("", &headers, &strict()).is_ok(), is_given, "{first}");
    }
}

#[test]
fn a_header_that_is_not_utf8_is_read_as_far_as_it_is() {
    const START: &[u8] = b"AWS4-HMAC-SHA256 Credential=\xff/20130609/r/dynamodb/aws4_request,";
    let parse = |rest: &str| {
        let value = [START, rest.as_bytes()].concat();
        let mut headers = header_map(&[("x-amz-date", DATE)]);
        headers.insert("authorization", http::HeaderValue::from_bytes(&value).unwrap());
        let head = RequestHead { method: "POST", path: "/", query: "", headers: &headers };
        let signature = PresentedSignature::parse(&head, &ParseRules::default());
        signature
            .map(|signature| signature.scope().access_key.to_owned())
            .map_err(|error| error.to_string())
    };
    assert_eq!(parse("SignedHeaders=host,Signature=00").unwrap(), "\u{fffd}");
    assert_eq!(
        parse("SignedHeaders=host").unwrap_err(),
        "Authorization header requires 'Signature' parameter. Authorization=AWS4-HMAC-SHA256 \
         Credential=\u{fffd}/20130609/r/dynamodb/aws4_request,SignedHeaders=host"
    );
}

#[test]
fn a_server_that_does_not_verify_takes_old_dates_and_any_region() {
    let headers = [("authorization", GOOD), ("x-amz-date", DATE)];
    let (_, region) = parse("", &headers, &ParseRules::default()).unwrap();
    assert_eq!(region, "r");
}

#[test]
fn a_server_that_does_not_verify_takes_any_service_and_reports_the_clock_before_other_faults() {
    let lenient = ParseRules { now, ..ParseRules::default() };
    let check = |authorization: &str, date: &str, expected: Result<(), &str>| {
        let headers = [("authorization", authorization), ("x-amz-date", date)];
        let parsed = parse("", &headers, &lenient).map(drop);
        assert_eq!(parsed.as_ref().map_err(String::as_str), expected.as_ref().map_err(|it| *it));
    };
    // What signers send that see an IP address instead of a host name.
    check(&GOOD.replace("/dynamodb/", "//"), DATE, Ok(()));
    check(&GOOD.replace("/dynamodb/", "/execute-api/"), DATE, Ok(()));
    let scope = "InvalidSignatureException: Credential should be scoped with a valid terminator: \
        'aws4_request', not 'x'. ";
    check(&GOOD.replace("aws4_request", "x"), DATE, Err(scope));
    let expired = "InvalidSignatureException: Signature expired: 20130301T000000Z is now earlier than \
        20130609T094515Z (20130609T100015Z - 15 min.)";
    check(&GOOD.replace("aws4_request", "x"), "20130301T000000Z", Err(expired));
    check(&GOOD.replace("20130609", "20130301"), "20130301T000000Z", Ok(()));
    check("AWS4-x Credential=a,SignedHeaders=b,Signature=c", "20130301T000000Z", Err(expired));
}

#[test]
fn presigned_requests_are_valid_as_long_as_they_say() {
    let parse = |date: &str, expires: &str| {
        let query = format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a%2F{}%2Fr%2Fdynamodb%2Faws4_request\
             &X-Amz-Date={date}&X-Amz-SignedHeaders=host&X-Amz-Signature=00{expires}",
            &date[..8]
        );
        parse(&query, &[], &strict()).map(drop)
    };
    let (minute_ago, hour_ago) = ("20130609T095915Z", "20130609T090015Z");
    assert_eq!(parse(minute_ago, ""), Ok(()));
    assert_eq!(parse(minute_ago, "&X-Amz-Expires=60"), Ok(()));
    assert_eq!(
        parse(minute_ago, "&X-Amz-Expires=59").unwrap_err(),
        "InvalidSignatureException: Signature expired: 20130609T095915Z is now earlier than \
         20130609T095916Z (20130609T100015Z - 59 sec.)"
    );
    assert!(parse(hour_ago, "").is_err());
    assert_eq!(parse(hour_ago, "&X-Amz-Expires=3600"), Ok(()));
    assert_eq!(
        parse(hour_ago, "&X-Amz-Expires=3540").unwrap_err(),
        "InvalidSignatureException: Signature expired: 20130609T090015Z is now earlier than \
         20130609T090115Z (20130609T100015Z - 59 min.)"
    );
    // A long validity does not make a signature valid earlier.
    assert!(parse("20130609T101516Z", "&X-Amz-Expires=604800").is_err());
    for expires in ["", "0", "-1", "604801", "soon"] {
        assert_eq!(
            parse(minute_ago, &format!("&X-Amz-Expires={expires}")).unwrap_err(),
            format!(
                "IncompleteSignatureException: X-Amz-Expires must be a number of seconds from 1 to \
                 604800. Got '{expires}'."
            )
        );
    }
}

#[test]
fn one_form_of_signature_is_needed() {
    const MISSING: &str =
        "MissingAuthenticationTokenException: Request is missing Authentication Token";
    check(
        "X-Amz-Algorithm=x",
        &[("authorization", GOOD)],
        "InvalidSignatureException: Found both 'X-Amz-Algorithm' as a query-string param \
         and 'Authorization' as HTTP header.",
    );
    check("", &[], MISSING);
    check("", &[("x-amz-date", DATE)], MISSING);
    check_header("AWS5-HMAC-SHA256 Credential=a", MISSING);
    check_header("Basic AWS4-", MISSING);
}

#[test]
fn missing_parts_of_a_header_are_listed_in_order() {
    check(
        "",
        &[("authorization", "AWS4-")],
        "IncompleteSignatureException: Authorization header requires 'Credential' parameter. \
         Authorization header requires 'Signature' parameter. \
         Authorization header requires 'SignedHeaders' parameter. \
         Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. \
         Authorization=AWS4-",
    );
    check_header(
        "AWS4-x Signature=,Credential=b,SignedHeaders=c",
        "IncompleteSignatureException: Authorization header requires 'Signature' parameter. \
         Authorization=AWS4-x Signature=,Credential=b,SignedHeaders=c",
    );
}

#[test]
fn missing_parts_of_a_query_are_listed_in_order() {
    check(
        "X-Amz-Algorithm",
        &[],
        "IncompleteSignatureException: AWS query-string parameters must include 'X-Amz-Algorithm'. \
         AWS query-string parameters must include 'X-Amz-Credential'. \
         AWS query-string parameters must include 'X-Amz-Signature'. \
         AWS query-string parameters must include 'X-Amz-SignedHeaders'. \
         AWS query-string parameters must include 'X-Amz-Date'. \
         Re-examine the query-string parameters.",
    );
    check(
        "X-Amz-Algorithm=a&X-Amz-Credential=b&X-Amz-SignedHeaders=c&X-Amz-Date=d",
        &[],
        "IncompleteSignatureException: AWS query-string parameters must include 'X-Amz-Signature'. \
         Re-examine the query-string parameters.",
    );
}

#[test]
fn dates_are_checked_before_all_else() {
    let all_wrong = "AWS4-x Credential=a,SignedHeaders=b,Signature=c";
    check(
        "",
        &[("authorization", all_wrong), ("x-amz-date", "Sun, 09 Jun 2013")],
        "IncompleteSignatureException: Date must be in ISO-8601 'basic format'. \
         Got 'Sun, 09 Jun 2013'. See http://en.wikipedia.org/wiki/ISO_8601",
    );
    check(
        "",
        &[("authorization", all_wrong), ("x-amz-date", "20130301T000000Z")],
        "InvalidSignatureException: Signature expired: 20130301T000000Z is now earlier than \
         20130609T094515Z (20130609T100015Z - 15 min.)",
    );
    check(
        "",
        &[("authorization", all_wrong), ("x-amz-date", "20130609T101516Z")],
        "InvalidSignatureException: Signature not yet current: 20130609T101516Z is still later than \
         20130609T101515Z (20130609T100015Z + 15 min.)",
    );
}

#[test]
fn an_empty_access_key_is_nobodys() {
    let headers = [("authorization", &*GOOD.replace("=a/", "=/")), ("x-amz-date", DATE)];
    let lenient = ParseRules { now, ..ParseRules::default() };
    assert_eq!(
        parse("", &headers, &lenient).unwrap_err(),
        "UnrecognizedClientException: The security token included in the request is invalid."
    );
}

#[test]
fn then_host_algorithm_and_scope() {
    check_header(
        "AWS4-x Credential=a,SignedHeaders=b,Signature=c",
        "InvalidSignatureException: 'Host' must be a 'SignedHeader' in the AWS Authorization.",
    );
    check_header(
        "AWS4-x Credential=a,SignedHeaders=host,Signature=c",
        "IncompleteSignatureException: Unsupported AWS 'algorithm': 'AWS4-x' \
         (only AWS4-HMAC-SHA256 for now). ",
    );
    check_header(
        "AWS4-HMAC-SHA256 Credential=a/b,SignedHeaders=host,Signature=c",
        "IncompleteSignatureException: Credential must have exactly 5 slash-delimited elements, \
         e.g. keyid/date/region/service/term, got 'a/b'",
    );
    check_header(
        "AWS4-HMAC-SHA256 Credential=a/b/c/d/e,SignedHeaders=host,Signature=c",
        "InvalidSignatureException: Credential should be scoped to a valid region, not 'c'. \
         Credential should be scoped to correct service: 'dynamodb'. \
         Credential should be scoped with a valid terminator: 'aws4_request', not 'e'. \
         Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: \
         'b' != '20130609', from '20130609T095204Z'.",
    );
}
