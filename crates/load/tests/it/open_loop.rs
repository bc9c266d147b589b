//! The schedule continues when the server stalls.

use std::thread;
use std::time::Duration;

use zenobe_load::{Pacing, Workload, run};
use zenobe_testing::{ScriptedReply, start_scripted_server};

use crate::support::small_plan;

/// The server stalls once, long enough for many requests to become due. Each of them must be
/// measured from its due time, although all but one were sent after the stall. All bounds are lower
/// bounds: a slow machine only makes latencies longer.
#[test]
fn a_stall_shows_in_the_latency_of_the_requests_that_waited() {
    const STALLED: usize = 50;
    let stall = Duration::from_millis(300);
    let address = start_scripted_server(move |request| {
        if request.number == STALLED {
            thread::sleep(stall);
        }
        ScriptedReply::response(200, "{}")
    });
    let mut plan = small_plan(&format!("http://{address}"), Workload::Get);
    (plan.connections, plan.threads) = (1, 1);
    plan.operations_max = Some(400);
    plan.pacing = Pacing::Open { requests_per_second: 1000.0 };
    let report = run(&plan, &mut |_| ()).unwrap();

    assert_eq!(report.requests, 400);
    assert_eq!(report.latency.len(), 400);
    // The n-th request after the stalled one was due n ms later and waited for the rest of the
    // stall. Buckets are a thousandth wide, so the bound is slightly lower.
    let bound = Duration::from_millis(99).as_nanos() as u64;
    let waited = report.latency.count_between(bound, u64::MAX);
    assert!(waited >= 200, "only {waited} waited");
    // The last request is due 399 ms after the first, however fast the server is.
    assert!(report.elapsed >= Duration::from_millis(399), "{:?}", report.elapsed);
    assert_eq!(report.service.len(), 400);
    assert!(report.service.max() >= stall.as_nanos() as u64 / 1000 * 999);
    // Requests sent after the stall got their responses at once, so the service time hides the
    // stall.
    assert!(report.service.count_between(bound, u64::MAX) < waited);
}

#[test]
fn requests_that_are_due_but_unsent_are_counted() {
    let address = start_scripted_server(|_| ScriptedReply::Hang);
    let mut plan = small_plan(&format!("http://{address}"), Workload::Put);
    plan.connections = 3;
    plan.operations_max = None;
    plan.warmup = Duration::ZERO;
    // Long enough for three requests on a busy machine.
    plan.duration = Duration::from_secs(2);
    plan.timeout = Duration::from_millis(1);
    plan.pacing = Pacing::Open { requests_per_second: 50.0 };
    let report = run(&plan, &mut |_| ()).unwrap();
    // A hundred were due, and each connection sent one.
    assert_eq!(report.requests, 0);
    assert_eq!(report.errors.get("(no answer)"), Some(&3));
    assert_eq!(report.unsent, 97);
    assert_eq!(report.latency.len(), 97);
    assert!(report.latency.max() >= 1_900_000_000);
}

#[test]
fn workers_share_the_schedule() {
    let address = start_scripted_server(|_| ScriptedReply::response(200, "{}"));
    for (connections, threads, operations) in [(5, 3, 100), (2, 2, 1), (3, 8, 2), (1, 1, 1)] {
        let mut plan = small_plan(&format!("http://{address}"), Workload::Get);
        (plan.connections, plan.threads) = (connections, threads);
        plan.operations_max = Some(operations);
        plan.pacing = Pacing::Open { requests_per_second: 20_000.0 };
        assert_eq!(run(&plan, &mut |_| ()).unwrap().requests, operations);
    }
}
