//! Every workload, on the real server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use zenobe_load::{
    Identity, KeyDistribution, Pacing, Plan, Report, Workload, exchange, html, json, plot, prepare,
    run, summary,
};
use zenobe_testing::{ScriptedReply, ServerProcess, start_scripted_server, wait_until};

use crate::support::small_plan;

#[test]
fn the_server_takes_every_request_of_every_workload() {
    let server = ServerProcess::in_memory(&[]);
    for workload in Workload::ALL {
        let plan = small_plan(&server.endpoint(), workload);
        prepare(&plan, &mut |_| ()).unwrap();
        let report = run(&plan, &mut |_| ()).unwrap();
        check_complete(&plan, &report);
        check_renderings(&plan, &report);
    }
}

#[test]
fn the_server_takes_every_distribution_in_both_loops() {
    let server = ServerProcess::in_memory(&[]);
    for keys in ["uniform", "zipfian", "zipfian:0.5", "latest", "hot", "single"] {
        for workload in [Workload::Get, Workload::Transact, Workload::BatchWrite, Workload::YcsbD] {
            let mut plan = small_plan(&server.endpoint(), workload);
            // One connection, because transactions on the same item cancel each other.
            plan.connections = 1;
            plan.keys = keys.parse::<KeyDistribution>().unwrap();
            plan.pacing = match workload {
                Workload::Get => Pacing::Open { requests_per_second: 10_000.0 },
                _ => Pacing::Closed,
            };
            prepare(&plan, &mut |_| ()).unwrap();
            check_complete(&plan, &run(&plan, &mut |_| ()).unwrap());
        }
    }
}

#[test]
fn a_server_that_always_answers_the_same_can_be_loaded() {
    let address = start_scripted_server(|_| ScriptedReply::response(200, "a fixed body"));
    for workload in Workload::ALL {
        let plan = small_plan(&format!("http://{address}"), workload);
        check_complete(&plan, &run(&plan, &mut |_| ()).unwrap());
    }
}

#[test]
fn reads_find_what_was_loaded() {
    let server = ServerProcess::in_memory(&[]);
    let mut plan = small_plan(&server.endpoint(), Workload::Query);
    prepare(&plan, &mut |_| ()).unwrap();
    // 250 items make two whole partitions, and every page starts where a whole page is left.
    assert_eq!(run(&plan, &mut |_| ()).unwrap().items, 25 * 300);

    // Scans start over at the end of their segment, so these are complete passes.
    plan = small_plan(&server.endpoint(), Workload::Scan);
    prepare(&plan, &mut |_| ()).unwrap();
    plan.connections = 1;
    plan.operations_max = Some(3);
    // Plus the marker item.
    assert_eq!(run(&plan, &mut |_| ()).unwrap().items, 3 * 251);
}

#[test]
fn a_scan_goes_on_where_the_last_page_ended() {
    let server = ServerProcess::in_memory(&[]);
    let mut plan = small_plan(&server.endpoint(), Workload::Scan);
    plan.items = 50;
    plan.item_bytes = 100_000;
    plan.connections = 1;
    prepare(&plan, &mut |_| ()).unwrap();
    // 5 MB make five pages: four of 1 MB and a rest.
    plan.operations_max = Some(2 * 5);
    let items = run(&plan, &mut |_| ()).unwrap().items;
    assert_eq!(items, 2 * 51);
}

#[test]
fn counting_counts_every_request_once() {
    let server = ServerProcess::in_memory(&[]);
    let plan = small_plan(&server.endpoint(), Workload::Counter);
    prepare(&plan, &mut |_| ()).unwrap();
    assert_eq!(run(&plan, &mut |_| ()).unwrap().requests, 300);
    let key = r#"{"TableName":"zenobe-bench","Key":{"pk":{"S":"user#000000000000"}}}"#;
    let answer = exchange(&plan.target, "GetItem", key.as_bytes()).unwrap();
    let body = String::from_utf8(answer.body).unwrap();
    assert!(body.contains(r#""visits":{"N":"300"}"#), "{body}");
}

#[test]
fn inserted_items_are_new_in_every_run() {
    let server = ServerProcess::in_memory(&[]);
    for workload in [Workload::YcsbD, Workload::YcsbE, Workload::PutIfAbsent] {
        let plan = small_plan(&server.endpoint(), workload);
        prepare(&plan, &mut |_| ()).unwrap();
        for _ in 0..2 {
            let before = item_count(&plan);
            let report = run(&plan, &mut |_| ()).unwrap();
            let puts = report.operations.iter().find(|each| each.operation.name() == "PutItem");
            assert_eq!(item_count(&plan) - before, puts.unwrap().requests, "{workload}");
            // The millisecond distinguishes runs.
            let ended = milliseconds();
            wait_until(|| milliseconds() > ended);
        }
    }
}

fn milliseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

fn item_count(plan: &Plan) -> u64 {
    let request = format!(r#"{{"TableName":"{}"}}"#, plan.table);
    let answer = exchange(&plan.target, "DescribeTable", request.as_bytes()).unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    answer["Table"]["ItemCount"].as_u64().unwrap()
}

fn check_complete(plan: &Plan, report: &Report) {
    let workload = plan.workload;
    assert_eq!(
        report.errors.len(),
        0,
        "{workload}: {:?} {:?}",
        report.errors,
        report.error_messages
    );
    assert_eq!(Some(report.requests), plan.operations_max, "{workload}");
    assert_eq!((report.unsent, report.stopped), (0, false), "{workload}");
    assert_eq!(report.latency.len(), report.requests, "{workload}");
    assert_eq!(report.service.len(), report.requests, "{workload}");
    assert!(report.elapsed > Duration::ZERO && report.requests_per_second() > 0.0, "{workload}");
    let by_operation: u64 = report.operations.iter().map(|each| each.requests).sum();
    assert_eq!(by_operation, report.requests, "{workload}");
    let by_interval: u64 = report.intervals.iter().map(|each| each.requests).sum();
    assert_eq!(by_interval, report.requests, "{workload}");
    let operations: Vec<&str> =
        report.operations.iter().map(|each| each.operation.name()).collect();
    let expected: &[&str] = match workload {
        Workload::Get | Workload::YcsbC => &["GetItem"],
        Workload::Put | Workload::PutIfAbsent | Workload::PutIfVersion | Workload::PutIndexed => {
            &["PutItem"]
        }
        Workload::Update | Workload::Counter => &["UpdateItem"],
        Workload::Query => &["Query"],
        Workload::Scan => &["Scan"],
        Workload::BatchWrite => &["BatchWriteItem"],
        Workload::BatchGet => &["BatchGetItem"],
        Workload::Transact => &["TransactWriteItems"],
        Workload::Select | Workload::Insert | Workload::SelectPage => &["ExecuteStatement"],
        Workload::YcsbA | Workload::YcsbB => &["GetItem", "UpdateItem"],
        Workload::YcsbD => &["GetItem", "PutItem"],
        Workload::YcsbE => &["PutItem", "Query"],
        Workload::YcsbF => &["GetItem", "ReadModifyWrite"],
    };
    assert_eq!(operations, expected, "{workload}");
}

fn check_renderings(plan: &Plan, report: &Report) {
    let text = summary(plan, report);
    let operations = report.operations.iter();
    assert!(operations.clone().all(|each| text.contains(each.operation.name())), "{text}");
    let identity = Identity { version: "1.2.3", commit: Some("abc") };
    let value: serde_json::Value =
        serde_json::from_str(&json(&identity, plan, report).to_string()).unwrap();
    assert_eq!(value["requests"], 300);
    assert_eq!(value["plan"]["workload"], plan.workload.name());
    assert_eq!(value["zenobe"]["commit"], "abc");
    let curve = value["latency"]["curve"].as_array().unwrap();
    assert!(curve.windows(2).all(|pair| pair[0]["us"].as_f64() <= pair[1]["us"].as_f64()));
    assert_eq!(curve.last().unwrap()["quantile"], 1.0);
    let svg = plot(plan, report);
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && !svg.contains("NaN"), "{svg}");
    assert!(html(&identity, plan, report).contains(&svg));
}
