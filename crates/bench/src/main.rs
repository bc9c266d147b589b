//! Measures GetItem and PutItem of a started server against two yardsticks, interleaved in one run:
//!
//! - **bare**: a `hyper` server that reads the same requests and answers a fixed body of the same size.
//!   What HTTP alone costs on this machine.
//! - **engine**: the same engine and store with the same group commit, called in process without HTTP or JSON.
//!   What storing alone costs.
//!
//! PutItem is measured on a table with a stream, too, and against the one without. At the end, items expire.
//!
//! Only the ratios mean anything: the machine is shared by client and server, and absolute rates differ from day to
//! day.

mod client;
mod expiry;
mod report;
mod subjects;
mod workload;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::report::Measurement;
use crate::subjects::Subject;
use crate::workload::Workload;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Measure the server against a bare HTTP server and against the engine without HTTP.
#[derive(Parser)]
#[command(
    name = "zenobe-bench",
    after_help = "Example:\n  cargo run --release -p zenobe-bench -- --seconds 5 --rounds 5"
)]
struct Arguments {
    /// Seconds per measurement
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Interleaved rounds; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Items loaded before measuring, of about 400 bytes each
    #[arg(long, default_value_t = 100_000)]
    items: u64,
    /// Items that expire at once
    #[arg(long, default_value_t = 100_000)]
    expiring_items: u64,
    /// Connections (or concurrent callers) to measure with
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256])]
    connections: Vec<usize>,
    /// Durability of the writes
    #[arg(long, default_value = "sync", value_parser = ["sync", "os"])]
    durability: String,
    /// The server's binary; built in release mode if not given
    #[arg(long, env = "ZENOBE_BINARY")]
    binary: Option<PathBuf>,
    #[command(subcommand)]
    child: Option<Child>,
}

#[derive(Subcommand)]
enum Child {
    /// Run only the bare server, printing its address
    #[command(hide = true)]
    Bare { body_bytes: usize },
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match arguments.child {
        Some(Child::Bare { body_bytes }) => subjects::bare::run(body_bytes),
        None => compare(&arguments),
    }
}

fn compare(arguments: &Arguments) -> Result<()> {
    let binary = match &arguments.binary {
        Some(path) => path.clone(),
        None => subjects::server::build()?,
    };
    let start = subjects::server::measure_start(&binary)?;
    progress(&format!("loading {} items into the server and the engine", arguments.items));
    let directory = tempfile::tempdir()?;
    let mut subjects = Subject::start_all(arguments, &binary, directory.path())?;

    let workloads: Vec<Workload> = arguments
        .connections
        .iter()
        .flat_map(|&connections| [Workload::get_item(connections), Workload::put_item(connections)])
        .collect();
    let mut measurements = Vec::new();
    for round in 1..=arguments.rounds {
        for workload in &workloads {
            let takes = |subject: &&mut Subject| subject.kind().takes(workload.operation);
            for subject in subjects.iter_mut().filter(takes) {
                progress(&format!(
                    "round {round} of {}: {} with {} connections, {}",
                    arguments.rounds,
                    workload.operation.name(),
                    workload.connections,
                    subject.kind().name()
                ));
                let duration = Duration::from_secs(arguments.seconds);
                let sample = subject.measure(workload, arguments.items, duration)?;
                measurements.push(Measurement {
                    workload: *workload,
                    kind: subject.kind(),
                    sample,
                });
            }
        }
    }
    drop(subjects);
    let mut expiries = Vec::new();
    for streamed in [false, true] {
        progress(&format!(
            "{} items expire{}",
            arguments.expiring_items,
            if streamed { " into a stream" } else { "" }
        ));
        let data = directory.path().join(format!("expiry-{streamed}"));
        expiries.push(expiry::measure(arguments, &binary, &data, streamed)?);
    }
    progress("");
    report::print(arguments, &start, &workloads, &measurements, &expiries);
    Ok(())
}

/// Shows one line of progress on standard error, replacing the last one.
fn progress(text: &str) {
    eprint!("\r\x1b[2K{text}");
    let _ = std::io::stderr().flush();
}
