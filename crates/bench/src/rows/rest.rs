//! How the server starts and idles, and how fast a test gets a database of its own.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zenobe_testing::Client;

use crate::measure::median;
use crate::outcome::{Finding, Outcome, Verdict};
use crate::subjects::server::{Keeping, Server};
use crate::{Result, load, machine, progress};

use super::Context;

const START_SAMPLES: usize = 9;
const FORK_SAMPLES: usize = 200;
/// The database that is forked: as many tables, each with four batches of items.
const FORKED_TABLES: usize = 4;
const BATCH_ITEMS: usize = 25;
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
    let fork_ms = fork(context)?;
    let (memory, cpu_percent) = rest(context)?;
    let size = std::fs::metadata(context.binary)?.len() as f64 / MEGABYTE;
    let memory_mb = memory.resident_mib * machine::MEBIBYTE / MEGABYTE;
    let findings = vec![
        Finding::at_most("start", "first answer with an empty store", 30.0, "ms", median(start_ms)),
        Finding::at_most("fork", "fork of a small database in memory", 2.0, "ms", median(fork_ms)),
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

/// How long requests for a fork take, in milliseconds. The answer names the fork's endpoint, which
/// serves from then on; each fork ends before the next one is made.
fn fork(context: &Context<'_>) -> Result<Vec<f64>> {
    let data = context.scratch.path("fork");
    let server = Server::start_with(context.binary, &data, Keeping::Memory, &["--test-control"])?;
    for table in 0..FORKED_TABLES {
        fill(&server, &format!("table-{table}"))?;
    }
    let mut client = Client::new(server.address);
    let mut fork_ms = Vec::new();
    for sample in 0..FORK_SAMPLES {
        if sample % 20 == 0 {
            progress::show(&format!("fork: {sample} of {FORK_SAMPLES}"));
        }
        let start = Instant::now();
        let made = control(&mut client, "POST", "forks", &json!({}))?;
        fork_ms.push(start.elapsed().as_secs_f64() * 1e3);
        if sample == 0 {
            check_copy(&made)?;
        }
        control(&mut client, "DELETE", &format!("forks/{}", made["id"]), &json!({}))?;
    }
    Ok(fork_ms)
}

fn fill(server: &Server, table: &str) -> Result<()> {
    let create = json!({
        "TableName": table,
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    });
    load::exchange(server.address, "CreateTable", &create.to_string())?;
    for batch in 0..4 {
        let puts = (0..BATCH_ITEMS)
            .map(|item| json!({"PutRequest": {"Item": {"id": {"S": format!("{batch}-{item}")}}}}));
        let write = json!({"RequestItems": {table: puts.collect::<Vec<_>>()}});
        load::exchange(server.address, "BatchWriteItem", &write.to_string())?;
    }
    Ok(())
}

/// A request to test control, which must succeed.
fn control(client: &mut Client, method: &str, path: &str, body: &Value) -> Result<Value> {
    let path = format!("/_zenobe/test/{path}");
    let headers = [("Content-Type", "application/json")];
    let reply = client.send(method, &path, &headers, body.to_string().as_bytes());
    let reply = reply.map_err(|error| format!("{method} {path}: {error}"))?;
    match reply.status {
        200 => Ok(reply.body),
        status => Err(format!("{method} {path} answers {status}: {}", reply.body).into()),
    }
}

/// What is measured must be a whole copy that answers.
fn check_copy(made: &Value) -> Result<()> {
    let endpoint = made["endpoint"].as_str().unwrap_or_default();
    let address = endpoint.strip_prefix("http://").unwrap_or_default().parse()?;
    let scanned = load::exchange(address, "Scan", &json!({"TableName": "table-0"}).to_string())?;
    let scanned: Value = serde_json::from_str(&scanned)?;
    match scanned["Count"].as_u64() {
        Some(count) if count == 4 * BATCH_ITEMS as u64 => Ok(()),
        _ => Err(format!("the fork at {endpoint} has {} items", scanned["Count"]).into()),
    }
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
