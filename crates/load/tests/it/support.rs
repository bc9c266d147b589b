//! Plans for short runs.

use std::time::Duration;

use zenobe_load::{Plan, Target, Workload};

/// A small plan that ends by count.
pub fn small_plan(endpoint: &str, workload: Workload) -> Plan {
    let target = Target::new(endpoint, "us-east-1", None).unwrap();
    let mut plan = Plan::new(target, workload);
    plan.items = 250;
    plan.connections = 4;
    plan.threads = 2;
    plan.operations_max = Some(300);
    // On a busy machine a server may take long; no test waits this long.
    plan.timeout = Duration::from_secs(120);
    plan
}
