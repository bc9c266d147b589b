//! The endpoint that receives batches: an HTTP server, or a Lambda function in a local runtime.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;

use super::delivery::DeliveryOutcome;
use super::record::{DeliveredRecord, event_of};
use crate::outbound::{self, Answered, OutboundError, Outgoing, Url};

#[derive(Debug, Clone)]
pub struct Endpoint {
    pub url: Url,
    pub timeout: Duration,
    pub reports_batch_item_failures: bool,
}

/// The result of a delivery, for the state machine and for people.
#[derive(Debug)]
pub struct EndpointResponse {
    pub outcome: DeliveryOutcome,
    /// `None` if there was no response at all.
    pub status: Option<u16>,
    /// Why not everything was delivered.
    pub problem: Option<String>,
}

impl Endpoint {
    pub async fn deliver(&self, records: &[DeliveredRecord]) -> EndpointResponse {
        let body = event_of(records);
        match post_json(&self.url, body, self.timeout).await {
            Ok(answered) => judge(&answered, records, self.reports_batch_item_failures),
            Err(error) => EndpointResponse {
                outcome: DeliveryOutcome::Failed,
                status: None,
                problem: Some(error.to_string()),
            },
        }
    }
}

pub async fn post_json(
    url: &Url,
    body: String,
    timeout: Duration,
) -> Result<Answered, OutboundError> {
    let json = HeaderValue::from_static("application/json");
    let outgoing = Outgoing {
        method: Method::POST,
        path: url.path().to_owned(),
        headers: HeaderMap::from_iter([(CONTENT_TYPE, json)]),
        body: Bytes::from(body),
    };
    outbound::send(url, outgoing, timeout).await
}

/// Interprets a response.
pub fn judge(
    answered: &Answered,
    records: &[DeliveredRecord],
    reports_failures: bool,
) -> EndpointResponse {
    let status = Some(answered.status);
    let failed = |problem: String| EndpointResponse {
        outcome: DeliveryOutcome::Failed,
        status,
        problem: Some(problem),
    };
    if !answered.is_success() {
        return failed(format!("the endpoint answered {}", answered.status));
    }
    let body: Value = serde_json::from_slice(&answered.body).unwrap_or(Value::Null);
    // To HTTP, a function that throws is a success: the service marks it with a header, local
    // runtimes only by the shape of the response.
    let says_error = body["errorMessage"].is_string() && body["errorType"].is_string();
    if answered.headers.contains_key("x-amz-function-error") || says_error {
        return failed(format!("the function failed: {}", body["errorMessage"]));
    }
    let failures = match &body["batchItemFailures"] {
        Value::Array(failures) if reports_failures => failures,
        Value::Null => {
            return EndpointResponse { outcome: DeliveryOutcome::Delivered, status, problem: None };
        }
        _ if !reports_failures => {
            return EndpointResponse { outcome: DeliveryOutcome::Delivered, status, problem: None };
        }
        _ => return failed("`batchItemFailures` is not a list".into()),
    };
    match first_failure(failures, records) {
        Some(None) => {
            EndpointResponse { outcome: DeliveryOutcome::Delivered, status, problem: None }
        }
        Some(Some(index)) => EndpointResponse {
            outcome: DeliveryOutcome::DeliveredBefore(index),
            status,
            problem: Some(format!("record {} failed", records[index].sequence)),
        },
        None => failed("`batchItemFailures` names a record that was not sent".into()),
    }
}

/// The index of the first record that failed. `None` for an unknown identifier, which fails the
/// whole batch, as in Lambda.
fn first_failure(failures: &[Value], records: &[DeliveredRecord]) -> Option<Option<usize>> {
    let index = |failure: &Value| {
        let identifier = failure["itemIdentifier"].as_str()?;
        records.iter().position(|record| record.sequence == identifier)
    };
    let indexes = failures.iter().map(index).collect::<Option<Vec<usize>>>()?;
    Some(indexes.into_iter().min())
}

#[cfg(test)]
mod tests {
    use super::super::record::sample;
    use super::*;

    #[test]
    fn answers_mean_what_they_mean_in_lambda() {
        let records: Vec<DeliveredRecord> = (1..=3).map(|sequence| sample(sequence, 0)).collect();
        let check = |status: u16, body: &str, expected: DeliveryOutcome| {
            let body = Bytes::copy_from_slice(body.as_bytes());
            let answered = Answered { status, headers: HeaderMap::new(), body };
            assert_eq!(judge(&answered, &records, true).outcome, expected, "{answered:?}");
        };
        check(200, "", DeliveryOutcome::Delivered);
        check(204, "", DeliveryOutcome::Delivered);
        check(200, "ok", DeliveryOutcome::Delivered);
        check(200, "null", DeliveryOutcome::Delivered);
        check(200, "{}", DeliveryOutcome::Delivered);
        check(200, r#"{"batchItemFailures":null}"#, DeliveryOutcome::Delivered);
        check(200, r#"{"batchItemFailures":[]}"#, DeliveryOutcome::Delivered);
        let second = r#"{"batchItemFailures":[{"itemIdentifier":"3"},{"itemIdentifier":"2"}]}"#;
        check(200, second, DeliveryOutcome::DeliveredBefore(1));
        let first = r#"{"batchItemFailures":[{"itemIdentifier":"1"}]}"#;
        check(200, first, DeliveryOutcome::DeliveredBefore(0));
        check(200, r#"{"batchItemFailures":[{"itemIdentifier":""}]}"#, DeliveryOutcome::Failed);
        check(200, r#"{"batchItemFailures":[{"itemIdentifier":"9"}]}"#, DeliveryOutcome::Failed);
        check(200, r#"{"batchItemFailures":[{}]}"#, DeliveryOutcome::Failed);
        check(200, r#"{"batchItemFailures":"1"}"#, DeliveryOutcome::Failed);
        check(200, r#"{"errorMessage":"x","errorType":"ValueError"}"#, DeliveryOutcome::Failed);
        check(200, r#"{"errorMessage":"a field of mine"}"#, DeliveryOutcome::Delivered);
        check(301, "", DeliveryOutcome::Failed);
        check(500, r#"{"batchItemFailures":[]}"#, DeliveryOutcome::Failed);
    }

    #[test]
    fn reports_count_only_where_they_are_asked_for() {
        let body = Bytes::from_static(br#"{"batchItemFailures":[{"itemIdentifier":"1"}]}"#);
        let answered = Answered { status: 200, headers: HeaderMap::new(), body };
        assert_eq!(judge(&answered, &[sample(1, 0)], false).outcome, DeliveryOutcome::Delivered);
        let headers = HeaderMap::from_iter([(
            "x-amz-function-error".parse().unwrap(),
            HeaderValue::from_static("Unhandled"),
        )]);
        let answered = Answered { headers, ..answered };
        assert_eq!(judge(&answered, &[sample(1, 0)], false).outcome, DeliveryOutcome::Failed);
    }
}
