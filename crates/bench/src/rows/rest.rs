//! How the server starts and idles.

use std::time::{Duration, Instant};

use crate::measure::median;
use crate::outcome::{Finding, Outcome, Verdict};
use crate::subjects::server::{Keeping, Server};
use crate::{Result, load, machine, progress};

use super::Context;

const START_SAMPLES: usize = 9;
const SETTLE: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(10);
/// What counts as "about zero": a hundredth of a core.
const IDLE_PERCENT_MAX: f64 = 1.0;
const MEGABYTE: f64 = 1e6;

pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    let mut start_ms = Vec::new();
    for sample in 0..START_SAMPLES {
        progress::show(&format!("start: {} of {START_SAMPLES}", sample + 1));
        let data = context.scratch.path(&format!("start-{sample}"));
        let start = Instant::now();
        let server = Server::start(context.binary, &data, Keeping::Sync)?;
        load::exchange(server.address, "ListTables", "{}")?;
        start_ms.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let (memory, cpu_percent) = rest(context)?;
    let size = std::fs::metadata(context.binary)?.len() as f64 / MEGABYTE;
    let memory_mb = memory.resident_mib * machine::MEBIBYTE / MEGABYTE;
    let findings = vec![
        Finding::at_most("start", "first answer with an empty store", 30.0, "ms", median(start_ms)),
        Finding::at_most("idle-memory", "idle memory (resident)", 20.0, "MB", memory_mb),
        Finding {
            row: "idle-cpu",
            what: "idle CPU".to_owned(),
            target: "about 0".to_owned(),
            measured: format!("{cpu_percent:.2} % of a core"),
            verdict: Verdict::of(cpu_percent <= IDLE_PERCENT_MAX),
        },
        Finding::at_most("binary", "release binary", 25.0, "MB", size),
    ];
    Ok(Outcome { findings, ..Outcome::default() })
}

/// The memory and processor time of a server that has answered once and is now idle.
fn rest(context: &Context<'_>) -> Result<(machine::Memory, f64)> {
    let server = Server::start(context.binary, &context.scratch.path("idle"), Keeping::Sync)?;
    load::exchange(server.address, "ListTables", "{}")?;
    progress::show("idle");
    std::thread::sleep(SETTLE);
    let before = machine::cpu_time(server.id())?;
    std::thread::sleep(IDLE);
    let used = machine::cpu_time(server.id())? - before;
    let memory = machine::memory(server.id())?;
    Ok((memory, used.as_secs_f64() / IDLE.as_secs_f64() * 100.0))
}
