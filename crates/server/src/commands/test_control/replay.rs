//! `zenobe test replay`: sends the requests of a recording again, one at a time, in the order in which they
//! were answered.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;
use zenobe_api::Operation;

use crate::commands::server_connection::{ConnectionArguments, ServerConnection};
use crate::commands::{CommandError, print_line};
use crate::outbound::Answered;

/// How many differences to print.
const DIFFERENCES_SHOWN: u64 = 20;
/// How often to tell how far the replay is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(
    after_help = "The server records with `zenobe serve --test-control --record FILE`. An answer differs if its status or the \
type of its error does; then the command fails. It leaves out requests for stream records, because their iterators mean nothing to another \
server.\n\nExamples:\n  zenobe test replay requests.jsonl\n  \
zenobe test replay requests.jsonl --speed max --endpoint http://127.0.0.1:8001"
)]
pub struct ReplayArguments {
    /// The recording
    file: PathBuf,
    /// How fast: 1x as recorded, 2x twice as fast, or max without waiting
    #[arg(long, default_value = "1x", value_name = "SPEED")]
    speed: Speed,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// By how much faster than recorded; `None` waits for nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Speed(Option<f64>);

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Speed, String> {
        let factor = text.strip_suffix('x').and_then(|factor| factor.parse::<f64>().ok());
        match (text, factor) {
            ("max", _) => Ok(Speed(None)),
            (_, Some(factor)) if factor > 0.0 && factor.is_finite() => Ok(Speed(Some(factor))),
            _ => Err("expected a factor such as 1x, 0.5x or 10x, or max".to_owned()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{}:{line}: this is not a recorded request: {problem}", path.display())]
    Line { path: PathBuf, line: u64, problem: String },
    #[error("{different} of {sent} answers differ from the recording")]
    Different { different: u64, sent: u64 },
}

/// A request, and how it was answered.
#[derive(Debug, PartialEq)]
struct Recorded {
    at_ms: f64,
    operation: Operation,
    body: String,
    outcome: Outcome,
}

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Answer {
        status: u16,
        error: Option<String>,
    },
    /// The connection was closed without an answer.
    Dropped,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Answer { status, error: Some(error) } => write!(out, "{status} {error}"),
            Outcome::Answer { status, error: None } => write!(out, "{status}"),
            Outcome::Dropped => out.write_str("no answer"),
        }
    }
}

#[derive(Default)]
struct Summary {
    sent: u64,
    different: u64,
    left_out: u64,
}

pub async fn run(arguments: ReplayArguments) -> Result<(), CommandError> {
    let ReplayArguments { file: path, speed, connection } = arguments;
    let connection = ServerConnection::new(&connection)?;
    let unreadable = |error| ReplayError::Read { path: path.clone(), error };
    let file = File::open(&path).map_err(unreadable)?;
    // The server may go on recording, these requests too.
    let size = file.metadata().map_err(unreadable)?.len();
    let mut file = BufReader::new(file.take(size));
    let (started, mut told) = (Instant::now(), Instant::now());
    let mut summary = Summary::default();
    for number in 1.. {
        let mut line = String::new();
        if file.read_line(&mut line).map_err(unreadable)? == 0 {
            break;
        }
        let recorded = match parse(&line) {
            Ok(recorded) => recorded,
            // It is being written.
            Err(_) if !line.ends_with('\n') => break,
            Err(problem) => {
                return Err(ReplayError::Line { path, line: number, problem }.into());
            }
        };
        if reads_records(recorded.operation) {
            summary.left_out += 1;
            continue;
        }
        if let Speed(Some(factor)) = speed {
            let due = Duration::from_secs_f64(recorded.at_ms / 1_000.0 / factor);
            tokio::time::sleep(due.saturating_sub(started.elapsed())).await;
        }
        send(&connection, number, recorded, &mut summary).await?;
        if told.elapsed() >= PROGRESS_INTERVAL {
            told = Instant::now();
            eprintln!("zenobe: {} requests sent", summary.sent);
        }
    }
    finish(&summary, started.elapsed())
}

async fn send(
    connection: &ServerConnection,
    line: u64,
    recorded: Recorded,
    summary: &mut Summary,
) -> Result<(), CommandError> {
    let Recorded { operation, body, outcome: expected, .. } = recorded;
    let outcome = match connection.call(operation, body).await {
        Ok(answered) => outcome_of(&answered),
        // The first request shows whether there is a server at all.
        Err(error) if summary.sent == 0 && expected != Outcome::Dropped => return Err(error.into()),
        Err(_) => Outcome::Dropped,
    };
    summary.sent += 1;
    if outcome != expected {
        summary.different += 1;
        if summary.different <= DIFFERENCES_SHOWN {
            let name = operation.name();
            print_line(&format!("line {line}: {name} was answered {expected}, now {outcome}"))?;
        }
    }
    Ok(())
}

fn finish(summary: &Summary, took: Duration) -> Result<(), CommandError> {
    let Summary { sent, different, left_out } = *summary;
    if different > DIFFERENCES_SHOWN {
        print_line(&format!("and {} more differences", different - DIFFERENCES_SHOWN))?;
    }
    print_line(&format!(
        "{sent} requests in {:.1} s: {} answered as recorded, {different} differently, {left_out} left out",
        took.as_secs_f64(),
        sent - different,
    ))?;
    match different {
        0 => Ok(()),
        _ => Err(ReplayError::Different { different, sent }.into()),
    }
}

/// Iterators and ARNs of streams hold times of the recorded server.
fn reads_records(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::GetRecords | Operation::GetShardIterator | Operation::DescribeStream
    )
}

fn parse(line: &str) -> Result<Recorded, String> {
    let recorded: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let missing = |name: &str| format!("it lacks a valid `{name}`");
    let operation = recorded["operation"].as_str().and_then(Operation::from_name);
    let status = &recorded["status"];
    Ok(Recorded {
        at_ms: recorded["at_ms"]
            .as_f64()
            .filter(|at| *at >= 0.0)
            .ok_or_else(|| missing("at_ms"))?,
        operation: operation.ok_or_else(|| missing("operation"))?,
        body: match &recorded["body"] {
            Value::Null => return Err(missing("body")),
            // What was not JSON.
            Value::String(text) => text.clone(),
            body => body.to_string(),
        },
        outcome: match status.as_u64().map(u16::try_from) {
            Some(Ok(status)) => {
                let error = recorded["error"].as_str().map(str::to_owned);
                Outcome::Answer { status, error }
            }
            None if status.is_null() => Outcome::Dropped,
            _ => return Err(missing("status")),
        },
    })
}

fn outcome_of(answered: &Answered) -> Outcome {
    let body: Value = serde_json::from_slice(&answered.body).unwrap_or_default();
    let error = body["__type"].as_str().filter(|_| !answered.is_success());
    let error = error.map(|name| name.rsplit('#').next().unwrap_or(name).to_owned());
    Outcome::Answer { status: answered.status, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_factors() {
        assert_eq!("1x".parse(), Ok(Speed(Some(1.0))));
        assert_eq!("0.5x".parse(), Ok(Speed(Some(0.5))));
        assert_eq!("max".parse(), Ok(Speed(None)));
        for text in ["", "2", "0x", "-1x", "infx", "NaNx", "fast"] {
            assert!(text.parse::<Speed>().is_err(), "{text}");
        }
    }

    #[test]
    fn lines_are_recorded_requests() {
        let line = r#"{"at_ms":1.5,"operation":"GetItem","body":{"a":1},"status":400,"error":"X"}"#;
        let outcome = Outcome::Answer { status: 400, error: Some("X".into()) };
        let (operation, body) = (Operation::GetItem, r#"{"a":1}"#.to_owned());
        assert_eq!(parse(line), Ok(Recorded { at_ms: 1.5, operation, body, outcome }));
        let line = r#"{"at_ms":0,"operation":"GetItem","body":"no json","status":null}"#;
        let recorded = parse(line).unwrap();
        assert_eq!((recorded.body.as_str(), recorded.outcome), ("no json", Outcome::Dropped));
        for (line, problem) in [
            ("", "EOF"),
            ("{}", "`at_ms`"),
            (r#"{"at_ms":1,"operation":"Get","body":{},"status":200}"#, "`operation`"),
            (r#"{"at_ms":1,"operation":"GetItem","status":200}"#, "`body`"),
            (r#"{"at_ms":1,"operation":"GetItem","body":{},"status":"x"}"#, "`status`"),
        ] {
            let found = parse(line).unwrap_err();
            assert!(found.contains(problem), "{line}: {found}");
        }
    }
}
