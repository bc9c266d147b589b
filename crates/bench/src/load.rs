//! The load generator as used here: one thread, and any error fails the measurement.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use zenobe_load::{LoadProgress, Pacing, Plan, Report, Target, Workload};

use crate::measure::{Lane, Latency, Sample};
use crate::outcome::count;
use crate::{Result, machine, progress};

const REGION: &str = "us-east-1";
const WARMUP: Duration = Duration::from_millis(300);
/// With many waiting writers, some peers take seconds for a write.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Loading is fastest when the server always has work.
const LOAD_CONNECTIONS: usize = 16;
const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// A plan for the workload's default table at this address.
pub fn plan(
    address: SocketAddr,
    workload: Workload,
    items: u64,
    connections: usize,
) -> Result<Plan> {
    let mut plan = Plan::new(target(address)?, workload);
    plan.items = items;
    plan.connections = connections;
    plan.threads = 1;
    plan.warmup = WARMUP;
    plan.timeout = TIMEOUT;
    Ok(plan)
}

/// The same requests to another address.
pub fn aimed_at(plan: &Plan, address: SocketAddr) -> Result<Plan> {
    Ok(Plan { target: target(address)?, ..plan.clone() })
}

/// The same reads, which see the table as of the end of a second since the epoch.
pub fn as_of(plan: &Plan, second: u64) -> Result<Plan> {
    let target = plan.target.clone().with_as_of(&second.to_string())?;
    Ok(Plan { target, ..plan.clone() })
}

/// Creates and loads the plan's table, and shows the progress.
pub fn prepare(title: &str, plan: &Plan) -> Result<Loaded> {
    watched(title, plan, |plan, observe| zenobe_load::prepare(plan, observe).map(drop))
}

/// Writes all items of a prepared table again, with new values.
pub fn rewrite(title: &str, plan: &Plan) -> Result<Loaded> {
    watched(title, &with_new_requests(plan), |plan, observe| zenobe_load::rewrite(plan, observe))
}

fn watched(
    title: &str,
    plan: &Plan,
    load: impl FnOnce(&Plan, &mut dyn FnMut(LoadProgress)) -> zenobe_load::Result<()>,
) -> Result<Loaded> {
    let mut plan = plan.clone();
    plan.connections = LOAD_CONNECTIONS;
    let start = Instant::now();
    let mut seconds = Seconds::default();
    let mut observe = |state: LoadProgress| {
        let LoadProgress::Loading { done, total } = state else { return };
        if let Some(rate) = seconds.observe(Instant::now(), done) {
            let [done, total, rate] = [done as f64, total as f64, rate].map(count);
            progress::show(&format!("{title}: {done} of {total} items loaded, {rate}/s"));
        }
    };
    load(&plan, &mut observe)?;
    Ok(Loaded { elapsed: start.elapsed(), rates: seconds.rates })
}

/// How a table was loaded.
#[derive(Debug)]
pub struct Loaded {
    pub elapsed: Duration,
    /// Items per second in each whole second. The last fraction of a second is left out.
    pub rates: Vec<f64>,
}

impl Loaded {
    /// The rate of the slowest second.
    pub fn slowest(&self) -> f64 {
        self.rates.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Splits the progress into seconds.
#[derive(Default)]
struct Seconds {
    /// When the current second began, and how much was done by then.
    begun: Option<(Instant, u64)>,
    rates: Vec<f64>,
}

impl Seconds {
    /// The rate of the second that ends here, if one does.
    fn observe(&mut self, now: Instant, done: u64) -> Option<f64> {
        let (begun, before) = *self.begun.get_or_insert((now, done));
        if now - begun < PROGRESS_INTERVAL {
            return None;
        }
        let rate = (done - before) as f64 / (now - begun).as_secs_f64();
        self.rates.push(rate);
        self.begun = Some((now, done));
        Some(rate)
    }
}

/// One measurement as a lane.
pub fn lane<'a>(name: impl Into<String>, plan: Plan) -> Lane<'a> {
    Lane::new(name, move |duration| sample(&plan, duration))
}

pub fn sample(plan: &Plan, duration: Duration) -> Result<Sample> {
    let report = run(&Plan { duration, ..plan.clone() })?;
    Ok(Sample {
        requests_per_second: report.requests_per_second(),
        latency: Some(latency(&report)),
        cpu_us: None,
    })
}

/// Sends the plan's load without measuring.
pub fn warm_up(plan: &Plan, duration: Duration) -> Result<()> {
    run(&Plan { duration, warmup: Duration::ZERO, ..plan.clone() }).map(drop)
}

/// A measurement that includes the processor time of the server. The warm-up is a separate run:
/// otherwise its processor time would count, but its requests would not.
pub fn watched_lane<'a>(name: impl Into<String>, plan: Plan, process: u32) -> Lane<'a> {
    Lane::new(name, move |duration| {
        warm_up(&plan, plan.warmup)?;
        let before = machine::cpu_time(process)?;
        let report = run(&Plan { duration, warmup: Duration::ZERO, ..plan.clone() })?;
        let used = machine::cpu_time(process)?.saturating_sub(before);
        Ok(Sample {
            requests_per_second: report.requests_per_second(),
            latency: Some(latency(&report)),
            cpu_us: Some(used.as_secs_f64() * 1e6 / report.requests as f64),
        })
    })
}

pub fn latency(report: &Report) -> Latency {
    Latency::of(&report.latency, NANOSECONDS_PER_MILLISECOND)
}

/// Runs a plan to its end. Failed or unsent requests make its figures worthless.
pub fn run(plan: &Plan) -> Result<Report> {
    let report = zenobe_load::run(&with_new_requests(plan), &mut |_| ())?;
    check(&report)?;
    Ok(report)
}

/// The same plan with new keys and values. Repeated requests would write values that are already
/// there, which is not a write at all, and read what was just read.
pub fn with_new_requests(plan: &Plan) -> Plan {
    // Tables are loaded with the first.
    static LAST_SEED: AtomicU64 = AtomicU64::new(1);
    Plan { seed: LAST_SEED.fetch_add(1, Ordering::Relaxed) + 1, ..plan.clone() }
}

pub fn check(report: &Report) -> Result<()> {
    if let Some((name, number)) = report.errors.iter().next() {
        let message = report.error_messages.get(name).map_or("", String::as_str);
        return Err(format!("{number} requests failed with {name}: {message}").into());
    }
    if report.reconnects > 0 {
        return Err(format!("the server closed {} connections", report.reconnects).into());
    }
    match report.requests {
        0 => Err("no request was answered".into()),
        _ => Ok(()),
    }
}

pub fn open_loop(plan: Plan, requests_per_second: f64) -> Plan {
    Plan { pacing: Pacing::Open { requests_per_second }, ..plan }
}

/// One call. An error response is an error.
pub fn exchange(address: SocketAddr, operation: &str, body: &str) -> Result<String> {
    let answer = zenobe_load::exchange(&target(address)?, operation, body.as_bytes())?;
    match answer.is_success() {
        true => Ok(String::from_utf8(answer.body)?),
        false => {
            let (name, message) = (answer.error_name(), answer.error_message());
            Err(format!("{operation} was refused with {name}: {message}").into())
        }
    }
}

fn target(address: SocketAddr) -> Result<Target> {
    Ok(Target::new(&format!("http://{address}"), REGION, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_seconds_count_and_the_first_starts_with_the_load() {
        let start = Instant::now();
        let mut seconds = Seconds::default();
        for (milliseconds, done) in
            [(5000, 0), (5400, 300), (6000, 1000), (6800, 1100), (7250, 2250), (7900, 2260)]
        {
            seconds.observe(start + Duration::from_millis(milliseconds), done);
        }
        assert_eq!(seconds.rates, [1000.0, 1000.0]);
    }
}
