//! `zenobe-bench soak`: one server under mixed load for minutes, with a scan that never stops, an
//! index that is added, and items that expire. Nothing may fail, memory may not grow beyond the
//! cache, and the 99th percentile must stay flat; [`verdict`] defines what that means.

mod background;
mod mix;
mod verdict;

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use zenobe_load::Workload;

use crate::outcome::count;
use crate::subjects::server::{CACHE_MIB_DEFAULT, Keeping, Server};
use crate::surroundings::Surroundings;
use crate::{Result, load, machine, progress, provenance};

use background::{Expiring, IndexChange};
use mix::{Mix, Part};
use verdict::{Limits, SoakVerdict};

/// The part of the highest rate to send.
const LOAD: f64 = 0.7;
const ITEMS: u64 = 500_000;
/// A run this long is worth publishing.
const DOCUMENT_MINUTES: f64 = 10.0;

#[derive(Args)]
pub struct SoakOptions {
    /// How long; a run of 10 minutes or more is written to docs/soak.md
    #[arg(long, default_value_t = DOCUMENT_MINUTES)]
    minutes: f64,
    /// Items of each table
    #[arg(long, default_value_t = ITEMS)]
    items: u64,
    /// The server's cache
    #[arg(long, default_value_t = CACHE_MIB_DEFAULT, value_name = "MIB")]
    cache_mb: u32,
    /// Write the figures as JSON to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    surroundings: Surroundings,
}

/// Returns whether the server passed.
pub fn run(options: &SoakOptions) -> Result<bool> {
    let scratch = options.surroundings.scratch()?;
    let file_system = options.surroundings.durable_file_system()?;
    let cache = options.cache_mb.to_string();
    let server = Server::start_with(
        &options.surroundings.binary,
        &scratch.path("soak"),
        Keeping::Sync,
        &["--cache-mb", &cache],
    )?;
    let memory_at_start = machine::memory(server.id())?;
    for workload in [Workload::Put, Workload::Query] {
        load::prepare("soak", &load::plan(server.address, workload, options.items, 1)?)?;
    }
    progress::show("soak: finding the highest rate");
    let mix = Mix::find(&server, options.items)?.at(LOAD);
    progress::say(&format!(
        "soak: {} requests/s, {:.0} % of the highest rate",
        count(mix.rate()),
        LOAD * 100.0
    ));
    let (parts, background) = soak(options, &server, &mix)?;
    let limits = Limits {
        memory_at_start_mib: memory_at_start.anonymous_mib,
        cache_mib: f64::from(options.cache_mb),
    };
    let verdict = SoakVerdict::reach(&parts, &background, limits);
    let text = format!(
        "Two tables of {} items each. {}",
        count(options.items as f64),
        verdict.render(&mix, &parts)
    );
    println!("`{}`\n\n{text}", options.command());
    if let Some(path) = &options.json {
        std::fs::write(path, verdict.json(&mix, &parts).to_string())?;
    }
    if options.minutes >= DOCUMENT_MINUTES {
        write_document(options, &file_system, &text)?;
    }
    Ok(verdict.faults.is_empty())
}

impl SoakOptions {
    /// The command that repeats this run, without options that only say where things are.
    fn command(&self) -> String {
        let mut command = format!("cargo xtask soak --minutes {}", self.minutes);
        if self.items != ITEMS {
            let _ = write!(command, " --items {}", self.items);
        }
        if self.cache_mb != CACHE_MIB_DEFAULT {
            let _ = write!(command, " --cache-mb {}", self.cache_mb);
        }
        command
    }
}

/// Results of the background work.
struct Background {
    index_backfill: Option<Duration>,
    expired: u64,
    faults: Vec<String>,
}

fn soak(options: &SoakOptions, server: &Server, mix: &Mix) -> Result<(Vec<Part>, Background)> {
    // One part per minute. Thirds are compared, so there are at least three.
    let number = (options.minutes.round() as usize).max(3);
    let third = number / 3;
    let length = Duration::from_secs_f64(options.minutes * 60.0 / number as f64);
    let expiring = Expiring::start(server.address)?;
    let mut index = IndexChange::new(server.address)?;
    let mut parts = Vec::with_capacity(number);
    for part in 1..=number {
        // The index exists only in the middle third, so the first and the last do the same work.
        if part == third + 1 {
            index.add();
        }
        if part == number - third + 1 {
            index.remove();
        }
        progress::show(&format!("soak: part {part} of {number}"));
        let done = mix.run(length, server.id())?;
        progress::say(&done.line(part));
        parts.push(done);
    }
    progress::show("soak: waiting for the last items to expire");
    let (expired, mut faults) = expiring.finish();
    let index_backfill = index.backfill();
    faults.extend(index.faults());
    Ok((parts, Background { index_backfill, expired, faults }))
}

fn write_document(options: &SoakOptions, file_system: &str, text: &str) -> Result<()> {
    let document = format!(
        "# Soak\n\nWritten by `{}` on {} at commit {}. Don't edit it: run the command.\n\n\
         - machine: {}\n- data on {file_system}\n\n{text}",
        options.command(),
        provenance::today(),
        provenance::commit(&options.surroundings.repository),
        machine::describe()
    );
    Ok(std::fs::write(options.surroundings.repository.join("docs/soak.md"), document)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surroundings::parsed;

    #[test]
    fn the_command_repeats_the_run() {
        for (words, command) in [
            ("", "cargo xtask soak --minutes 10"),
            ("--minutes 0.5 --items 1000", "cargo xtask soak --minutes 0.5 --items 1000"),
            ("--cache-mb 64", "cargo xtask soak --minutes 10 --cache-mb 64"),
        ] {
            assert_eq!(parsed::<SoakOptions>(words).command(), command);
        }
    }
}
