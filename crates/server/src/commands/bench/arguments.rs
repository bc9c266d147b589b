//! The options of `zenobe bench`.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use zenobe_load::{KeyDistribution, LoadError, Pacing, Plan, Target, Workload};

use crate::commands::server_connection::ConnectionArguments;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zenobe bench get                                   the highest rate of reads
  zenobe bench put --rate 5000 --duration 60s        latency at a fixed rate
  zenobe bench ycsb-a --plot ycsb-a.html             a mix, with a page of plots
  zenobe bench query --keys zipfian --json -         for a program to read
  zenobe bench update --rate 500 --retry-throttled --drop \\
    --endpoint https://dynamodb.eu-west-1.amazonaws.com --region eu-west-1

The table is created and loaded first, and kept for the next run; --drop deletes it at the end. zenobe bench never touches \
a table that it did not create. Ctrl-C ends a run early and prints the results so far. The exit code is 1 if operations failed.")]
pub struct BenchArguments {
    /// Workload
    #[arg(default_value = "get", value_parser = workload_parser())]
    workload: Workload,
    #[command(flatten)]
    connection: ConnectionArguments,
    /// Connections, each with one request in flight
    #[arg(long, short, default_value_t = 64, value_name = "NUMBER")]
    connections: usize,
    /// Threads that drive the connections [default: one for every four cores]
    #[arg(long, short, value_name = "NUMBER")]
    threads: Option<usize>,
    /// Send this many requests per second on a fixed schedule, and measure latency from the scheduled time
    #[arg(long, short, value_name = "REQUESTS")]
    rate: Option<f64>,
    /// How long to measure: seconds, or a number with ms, s, m or h
    #[arg(long, short, default_value = "10s", value_parser = parse_duration, value_name = "TIME")]
    duration: Duration,
    /// How long to send load before measuring
    #[arg(long, short, default_value = "2s", value_parser = parse_duration, value_name = "TIME")]
    warmup: Duration,
    /// Stop after this many operations instead of after a time, without warm-up
    #[arg(long, value_name = "NUMBER")]
    operations: Option<u64>,
    /// Items to load into the table
    #[arg(long, short, default_value_t = 100_000, value_name = "NUMBER")]
    items: u64,
    /// Size of an item: its names and values
    #[arg(long, default_value_t = 400, value_name = "BYTES")]
    item_bytes: usize,
    /// Key distribution: uniform, zipfian[:CONSTANT], latest, hot[:OPERATIONS:KEYS] or single [default: by workload]
    #[arg(long, short, value_name = "DISTRIBUTION")]
    keys: Option<KeyDistribution>,
    /// Table to use [default: zenobe-bench, zenobe-bench-sorted or zenobe-bench-indexed, by workload]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Delete the table at the end instead of keeping it for the next run
    #[arg(long)]
    pub drop: bool,
    /// Retry throttled requests after a pause instead of counting them as errors
    #[arg(long)]
    retry_throttled: bool,
    /// How long to wait for the last answers
    #[arg(long, default_value = "10s", value_parser = parse_duration, value_name = "TIME")]
    timeout: Duration,
    /// Random seed; the same seed sends the same requests [default: a new one each time]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Write all results as JSON to a file; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<JsonOutput>,
    /// Plot latency by percentile and over time to a .svg or .html file
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PlotOutput>,
    /// Exit with 0 even if operations failed
    #[arg(long)]
    pub allow_errors: bool,
}

impl BenchArguments {
    pub fn plan(&self) -> Result<Plan, LoadError> {
        let ConnectionArguments { endpoint, region } = &self.connection;
        let mut plan = Plan::new(Target::from_environment(endpoint, region)?, self.workload);
        if let Some(table) = &self.table {
            plan.table.clone_from(table);
        }
        if let Some(requests_per_second) = self.rate {
            plan.pacing = Pacing::Open { requests_per_second };
        }
        Ok(Plan {
            keys: self.keys.unwrap_or(plan.keys),
            threads: self.threads.unwrap_or(plan.threads),
            items: self.items,
            item_bytes: self.item_bytes,
            connections: self.connections,
            warmup: self.warmup,
            duration: self.duration,
            operations_max: self.operations,
            retry_throttled: self.retry_throttled,
            timeout: self.timeout,
            seed: self.seed.unwrap_or_else(rand::random),
            ..plan
        })
    }
}

#[derive(Debug, Clone)]
pub enum JsonOutput {
    Standard,
    File(PathBuf),
}

impl FromStr for JsonOutput {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<JsonOutput, Infallible> {
        Ok(match text {
            "-" => JsonOutput::Standard,
            path => JsonOutput::File(path.into()),
        })
    }
}

#[derive(Debug, Clone)]
pub enum PlotOutput {
    Svg(PathBuf),
    Html(PathBuf),
}

impl FromStr for PlotOutput {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<PlotOutput, &'static str> {
        let path = PathBuf::from(text);
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        match extension.to_str() {
            Some("svg") => Ok(PlotOutput::Svg(path)),
            Some("html" | "htm") => Ok(PlotOutput::Html(path)),
            _ => Err("the file's name must end in .svg or .html"),
        }
    }
}

fn workload_parser() -> impl TypedValueParser<Value = Workload> {
    let values = Workload::ALL
        .map(|workload| PossibleValue::new(workload.name()).help(workload.description()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Workload>())
}

fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("a time is a number of seconds, or a number with ms, s, m or h"),
    };
    let number: f64 = digits.parse().map_err(|_| "a time begins with a number")?;
    let time = Duration::try_from_secs_f64(number * seconds);
    // Less than a year: the clock's arithmetic can't overflow, and nobody waits longer.
    time.ok().filter(|time| time.as_secs() < 365 * 24 * 3600).ok_or("the time is out of range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        for (text, milliseconds) in
            [("10", 10_000), ("1.5s", 1500), ("250ms", 250), ("2m", 120_000), ("1h", 3_600_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "-1", "10 s", "5d", "1e99", "nan"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
