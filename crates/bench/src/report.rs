//! Prints the measurements as a Markdown table of medians and ratios.

use crate::Arguments;
use crate::client::Sample;
use crate::expiry::Expiry;
use crate::subjects::SubjectKind;
use crate::subjects::server::Start;
use crate::workload::Workload;

pub struct Measurement {
    pub workload: Workload,
    pub kind: SubjectKind,
    pub sample: Sample,
}

pub fn print(
    arguments: &Arguments,
    start: &Start,
    workloads: &[Workload],
    measurements: &[Measurement],
    expiries: &[Expiry],
) {
    println!(
        "Medians of {} interleaved rounds of {} s, {} items of about 400 bytes, durability {}.\n",
        arguments.rounds, arguments.seconds, arguments.items, arguments.durability
    );
    println!(
        "| operation | connections | requests/s | of bare hyper | of engine without HTTP | p50 | p99 | with a stream | of without |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for workload in workloads {
        let rate = |kind| median_rate(measurements, workload, kind);
        let server = rate(SubjectKind::Server);
        let streamed = match SubjectKind::Streamed.takes(workload.operation) {
            true => {
                let streamed = rate(SubjectKind::Streamed);
                format!("{streamed:.0} | {:.0} %", 100.0 * streamed / server)
            }
            false => "– | –".to_owned(),
        };
        println!(
            "| {} | {} | {:.0} | {:.0} % | {:.0} % | {:.2} ms | {:.2} ms | {streamed} |",
            workload.operation.name(),
            workload.connections,
            server,
            100.0 * server / rate(SubjectKind::Bare),
            100.0 * server / rate(SubjectKind::Engine),
            median_latency_ms(measurements, workload, 50.0),
            median_latency_ms(measurements, workload, 99.0),
        );
    }
    println!();
    for expiry in expiries {
        println!(
            "{} items expire at {:.0} items/s{}, {:.0} items/s with the time to index them first.",
            expiry.items,
            expiry.items_per_second,
            if expiry.streamed { " into a stream" } else { "" },
            expiry.items_per_second_with_indexing
        );
    }
    println!(
        "\nReady {:.0} ms after starting with an empty store; {:.1} MB resident when idle.",
        start.ready_ms, start.idle_memory_mb
    );
}

fn samples<'a>(
    measurements: &'a [Measurement],
    workload: &'a Workload,
    kind: SubjectKind,
) -> impl Iterator<Item = &'a Sample> {
    measurements
        .iter()
        .filter(move |each| each.workload == *workload && each.kind == kind)
        .map(|each| &each.sample)
}

fn median_rate(measurements: &[Measurement], workload: &Workload, kind: SubjectKind) -> f64 {
    median(samples(measurements, workload, kind).map(|sample| sample.requests_per_second))
}

fn median_latency_ms(measurements: &[Measurement], workload: &Workload, percentile: f64) -> f64 {
    median(
        samples(measurements, workload, SubjectKind::Server)
            .map(|sample| sample.latency_us.value_at_percentile(percentile) as f64 / 1000.0),
    )
}

pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
