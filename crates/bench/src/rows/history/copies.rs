//! Restores and exports of whole tables, and loading the same items for comparison.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zenobe_load::{Plan, Workload};

use crate::measure::{Sample, Series, median};
use crate::outcome::{Finding, Outcome, Section, Verdict, count};
use crate::rows::Context;
use crate::subjects::server::{Keeping, Server};
use crate::{Result, answers, load, machine, progress};

const TITLE: &str = "copies";
const RESTORED_TABLE: &str = "restored";
const BUCKET: &str = "exports";
/// So much more than in other tables that starting a job does not count.
const ITEMS_FACTOR: u64 = 4;
const RESTORE_MEGABYTES_PER_CORE_SECOND_MIN: f64 = 50.0;
const EXPORT_MEGABYTES_PER_CORE_SECOND_MIN: f64 = 100.0;
const RESTORE_SHARE_MIN: f64 = 0.6;
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const WAIT_MAX: Duration = Duration::from_secs(300);

pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    let buckets = context.scratch.path("buckets");
    std::fs::create_dir_all(buckets.join(BUCKET))?;
    let endpoint = format!("file://{}", buckets.display());
    let options = ["--s3-endpoint", &endpoint];
    let data = context.scratch.path("copies");
    let server = Server::start_with(context.binary, &data, Keeping::Os, &options)?;
    let items = context.effort.items * ITEMS_FACTOR;
    let plan = load::plan(server.address, Workload::BatchWrite, items, 1)?;
    let mut rounds = Vec::new();
    for round in 1..=context.effort.rounds {
        progress::show(&format!("{TITLE}: round {round} of {}", context.effort.rounds));
        rounds.push(Round::measure(&server, &plan)?);
    }
    Ok(outcome(&rounds))
}

/// What one round has measured, of the same items.
struct Round {
    items: u64,
    megabytes: f64,
    load: Cost,
    restore: Cost,
    export: Cost,
}

#[derive(Clone, Copy)]
struct Cost {
    elapsed: Duration,
    /// The processor time of the server.
    cpu: Duration,
}

impl Round {
    /// The server is idle before each step.
    fn measure(server: &Server, plan: &Plan) -> Result<Round> {
        let address = server.address;
        zenobe_load::drop_table(plan)?;
        let load = cost(server, || load::prepare(TITLE, plan).map(drop))?;
        answers::keep_history(address, &plan.table, true)?;
        let restore = cost(server, || restore(address, &plan.table))?;
        let items = answers::item_count(address, &plan.table)?;
        if answers::item_count(address, RESTORED_TABLE)? != items {
            return Err("a restored table does not have all items".into());
        }
        answers::call(address, "DeleteTable", &json!({"TableName": RESTORED_TABLE}))?;
        let export = cost(server, || export(address, &plan.table, items))?;
        let megabytes = answers::table_bytes(address, &plan.table)? as f64 / 1e6;
        // Otherwise its items would stay behind as a backup of the deleted table.
        answers::keep_history(address, &plan.table, false)?;
        Ok(Round { items, megabytes, load, restore, export })
    }
}

fn cost(server: &Server, work: impl FnOnce() -> Result<()>) -> Result<Cost> {
    server.settle(TITLE)?;
    let (begun, before) = (Instant::now(), machine::cpu_time(server.id())?);
    work()?;
    Ok(Cost { elapsed: begun.elapsed(), cpu: machine::cpu_time(server.id())? - before })
}

fn restore(address: SocketAddr, table: &str) -> Result<()> {
    let request = json!({
        "SourceTableName": table,
        "TargetTableName": RESTORED_TABLE,
        "UseLatestRestorableTime": true,
    });
    answers::call(address, "RestoreTableToPointInTime", &request)?;
    poll(|| Ok(answers::describe(address, RESTORED_TABLE)?["TableStatus"] == "ACTIVE"))
}

fn export(address: SocketAddr, table: &str, items: u64) -> Result<()> {
    let arn = answers::describe(address, table)?["TableArn"].take();
    let request = json!({"TableArn": arn, "S3Bucket": BUCKET, "ExportFormat": "DYNAMODB_JSON"});
    let begun = answers::call(address, "ExportTableToPointInTime", &request)?;
    let begun: Value = serde_json::from_str(&begun)?;
    let described = json!({"ExportArn": begun["ExportDescription"]["ExportArn"]});
    poll(|| {
        let answer = answers::call(address, "DescribeExport", &described)?;
        let answer: Value = serde_json::from_str(&answer)?;
        let export = &answer["ExportDescription"];
        match export["ExportStatus"].as_str() {
            Some("IN_PROGRESS") => Ok(false),
            Some("COMPLETED") if export["ItemCount"] == items => Ok(true),
            _ => Err(format!("the export ended otherwise: {answer}").into()),
        }
    })
}

fn poll(mut is_over: impl FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + WAIT_MAX;
    while !is_over()? {
        if Instant::now() > end {
            return Err("it does not end".into());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

fn outcome(rounds: &[Round]) -> Outcome {
    let rates = |name: &str, of: fn(&Round) -> Cost| {
        let rate = |round: &Round| round.items as f64 / of(round).elapsed.as_secs_f64();
        Series::new(name, rounds.iter().map(|round| Sample::of_rate(rate(round))).collect())
    };
    let (load, restore) = (rates("load", |it| it.load), rates("restore", |it| it.restore));
    let what = "restore of a table, items/s";
    let of = "loading the same items with BatchWriteItem";
    let findings = vec![
        per_core(
            "history-restore",
            "restore of a table, item bytes per core",
            RESTORE_MEGABYTES_PER_CORE_SECOND_MIN,
            megabytes_per_core_second(rounds, |it| it.restore),
        ),
        Finding::share("history-restore-share", what, RESTORE_SHARE_MIN, of, &restore, &load),
        per_core(
            "history-export",
            "export of a table as compressed DYNAMODB_JSON, item bytes per core",
            EXPORT_MEGABYTES_PER_CORE_SECOND_MIN,
            megabytes_per_core_second(rounds, |it| it.export),
        ),
    ];
    let heading = "History: restores and exports".to_owned();
    let sections = vec![Section { heading, text: describe(rounds) }];
    Outcome { findings, sections, charts: Vec::new() }
}

fn per_core(row: &'static str, what: &str, least: f64, measured: f64) -> Finding {
    Finding {
        row,
        what: what.to_owned(),
        target: format!("≥ {least} MB/s"),
        measured: format!("{measured:.0} MB/s"),
        verdict: Verdict::of(measured >= least),
    }
}

fn megabytes_per_core_second(rounds: &[Round], of: fn(&Round) -> Cost) -> f64 {
    median(rounds.iter().map(|round| round.megabytes / of(round).cpu.as_secs_f64()))
}

fn megabytes_per_second(rounds: &[Round], of: fn(&Round) -> Cost) -> f64 {
    median(rounds.iter().map(|round| round.megabytes / of(round).elapsed.as_secs_f64()))
}

fn describe(rounds: &[Round]) -> String {
    let line = |name: &str, of: fn(&Round) -> Cost| {
        format!(
            "| {name} | {:.0} | {:.0} |\n",
            megabytes_per_second(rounds, of),
            megabytes_per_core_second(rounds, of)
        )
    };
    format!(
        "A table of {} items ({:.0} MB as DynamoDB counts item bytes), durability `os`, {} rounds, each beginning with a new table. Before each \
         step the server is idle. A step takes from the first request until DescribeTable or DescribeExport shows its end. Per core means \
         per second of processor time of the server's process in that time, with all its threads: for loading that includes HTTP, and \
         compactions wherever they run. Items are loaded with BatchWriteItem on 16 connections. The export writes to a directory.\n\n\
         | | MB/s by the clock | MB/s per core |\n|---|---:|---:|\n{}{}{}",
        count(median(rounds.iter().map(|round| round.items as f64))),
        median(rounds.iter().map(|round| round.megabytes)),
        rounds.len(),
        line("load with BatchWriteItem", |it| it.load),
        line("restore to a point in time", |it| it.restore),
        line("export, DYNAMODB_JSON, gzip", |it| it.export),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(restore_s: u64, export_s: u64) -> Round {
        let cost = |seconds| Cost {
            elapsed: Duration::from_secs(seconds),
            cpu: Duration::from_secs(2 * seconds),
        };
        let (load, restore, export) = (cost(6), cost(restore_s), cost(export_s));
        Round { items: 6_000_000, megabytes: 2_400.0, load, restore, export }
    }

    #[test]
    fn speeds_are_compared_with_processor_time_and_with_loading() {
        let verdicts = |restore_s, export_s| {
            let outcome = outcome(&[round(restore_s, export_s)]);
            let verdicts: Vec<bool> =
                outcome.findings.iter().map(|it| it.verdict == Verdict::Met).collect();
            (verdicts, outcome.sections[0].text.clone())
        };
        let (met, text) = verdicts(10, 12);
        assert_eq!(met, [true, true, true]);
        assert!(text.contains("| restore to a point in time | 240 | 120 |"), "{text}");
        assert_eq!(verdicts(11, 12).0, [true, false, true]);
        assert_eq!(verdicts(25, 13).0, [false, false, false]);
    }
}
