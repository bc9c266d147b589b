//! Servers that fail, close connections, hang and throttle.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use zenobe_load::{Client, LoadError, Report, Stop, Target, Workload, exchange, run, run_until};
use zenobe_testing::{ScriptedReply, ScriptedRequest, http_response, start_scripted_server};

use crate::support::small_plan;

const THROTTLED: &str =
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"slow down"}"#;

fn run_against(
    script: impl Fn(&ScriptedRequest) -> ScriptedReply + Send + Sync + 'static,
) -> Report {
    let address = start_scripted_server(script);
    let mut plan = small_plan(&format!("http://{address}"), Workload::Get);
    plan.operations_max = Some(40);
    run(&plan, &mut |_| ()).unwrap()
}

fn errors(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
    pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn errors_are_counted_by_their_names() {
    let report = run_against(|request| match request.number % 4 {
        0 => ScriptedReply::response(400, THROTTLED),
        1 => ScriptedReply::response(503, "<html>"),
        _ => ScriptedReply::response(200, "{}"),
    });
    assert_eq!(report.errors, errors(&[("ThrottlingException", 10), ("HTTP 503", 10)]));
    assert_eq!(report.requests, 20);
    assert_eq!(report.latency.len(), 20);
    assert_eq!(report.error_messages["ThrottlingException"], "slow down");
}

#[test]
fn a_connection_that_the_server_closes_is_opened_again() {
    // The server announces the close, after each response.
    let closing = |body: &str| {
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    // 40 requests on four connections, of which some may find no request left when they begin.
    let all_but_first = 36..40;
    let report = run_against(move |_| ScriptedReply::SendAndClose(closing("{}").into_bytes()));
    assert_eq!((report.requests, report.error_count()), (40, 0));
    assert!(all_but_first.contains(&report.reconnects), "{}", report.reconnects);

    // The server closes silently after each response: the next request meets a closed connection.
    let report = run_against(|_| ScriptedReply::SendAndClose(http_response(200, "{}")));
    assert_eq!((report.requests, report.error_count()), (40, 0));
    assert!(all_but_first.contains(&report.reconnects), "{}", report.reconnects);

    // The server closes in the middle of a response.
    let report = run_against(|request| match request.number {
        5 => {
            ScriptedReply::SendAndClose(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}".to_vec())
        }
        6 => ScriptedReply::SendAndClose(b"SMTP".to_vec()),
        _ => ScriptedReply::response(200, "{}"),
    });
    assert_eq!(report.errors, errors(&[("(malformed answer)", 2)]));
    assert_eq!(report.requests, 38);
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let address = start_scripted_server(|request| match request.number {
        0..4 => ScriptedReply::response(200, "{}"),
        4 => ScriptedReply::Hang,
        _ => ScriptedReply::Close,
    });
    let mut plan = small_plan(&format!("http://{address}"), Workload::Get);
    plan.connections = 1;
    plan.operations_max = Some(5);
    plan.timeout = Duration::from_secs(5);
    let report = run(&plan, &mut |_| ()).unwrap();
    assert_eq!(report.requests, 4);
    assert_eq!(report.errors, errors(&[("(no answer)", 1)]));
}

#[test]
fn throttling_is_retried_only_if_asked() {
    let unprocessed = r#"{"UnprocessedItems":{"zenobe-bench":[{"PutRequest":{"Item":{}}}]}}"#;
    for (workload, first) in [
        (Workload::Put, http_response(400, THROTTLED)),
        (Workload::BatchWrite, http_response(200, unprocessed)),
    ] {
        for retry_throttled in [false, true] {
            let first = first.clone();
            let address = start_scripted_server(move |request| match request.number {
                0..3 => ScriptedReply::Send(first.clone()),
                _ => ScriptedReply::response(200, "{}"),
            });
            let mut plan = small_plan(&format!("http://{address}"), workload);
            plan.connections = 1;
            plan.operations_max = Some(10);
            plan.retry_throttled = retry_throttled;
            let report = run(&plan, &mut |_| ()).unwrap();
            let counts = (report.requests, report.error_count(), report.throttled);
            assert_eq!(counts, if retry_throttled { (10, 0, 3) } else { (7, 3, 0) }, "{workload}");
        }
    }
}

#[test]
fn a_stopped_run_reports_what_it_has() {
    let address = start_scripted_server(|_| ScriptedReply::response(200, "{}"));
    let mut plan = small_plan(&format!("http://{address}"), Workload::Get);
    plan.operations_max = None;
    plan.warmup = Duration::ZERO;
    plan.duration = Duration::from_secs(3600);
    let stop = Stop::new();
    let report = run_until(&plan, &stop, &mut |_| stop.stop()).unwrap();
    assert!(report.stopped && report.requests > 0);
    assert_eq!(report.latency.len(), report.requests);
}

#[test]
fn an_endpoint_without_a_server_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let plan = small_plan(&endpoint, Workload::Get);
    let fault = run(&plan, &mut |_| ()).unwrap_err();
    assert!(matches!(&fault, LoadError::Connect { .. }), "{fault}");
    assert!(fault.to_string().contains(&endpoint), "{fault}");
}

#[test]
fn answers_with_errors_are_answers() {
    let address = start_scripted_server(|_| ScriptedReply::response(400, THROTTLED));
    let target = Target::new(&format!("http://{address}"), "us-east-1", None).unwrap();
    let answer = exchange(&target, "ListTables", b"{}").unwrap();
    assert_eq!((answer.status, answer.is_success()), (400, false));
    assert_eq!(answer.error_name(), "ThrottlingException");
    assert_eq!(answer.error_message(), "slow down");
}

#[test]
fn a_call_that_is_dropped_takes_its_connection_with_it() {
    let arrived = Arc::new(tokio::sync::Notify::new());
    let seen = arrived.clone();
    let address = start_scripted_server(move |request| match request.number {
        1 => {
            seen.notify_one();
            ScriptedReply::Hang
        }
        number => ScriptedReply::response(200, &format!("{{\"number\":{number}}}")),
    });
    let target = Target::new(&format!("http://{address}"), "us-east-1", None).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = Client::new(target).unwrap();
        let answer = client.call("ListTables", b"{}").await.unwrap();
        assert_eq!(answer.body, b"{\"number\":0}");
        tokio::select! {
            answer = client.call("ListTables", b"{}") => panic!("{answer:?}"),
            () = arrived.notified() => {}
        }
        let answer = client.call("ListTables", b"{}").await.unwrap();
        assert_eq!(answer.body, b"{\"number\":2}");
    });
}
