//! The commands besides `serve`. Most talk to a running server.

mod backup;
mod bench;
mod change_text;
mod clock;
mod cost;
mod export;
mod health;
mod history;
mod import;
mod live_line;
mod manual;
mod moving;
mod partitions;
mod restore;
mod server_connection;
mod sql;
mod status;
mod tail;
mod test_control;
mod throughput;
mod top;
mod transfer_arguments;
mod trigger;

use clap::Subcommand;
use zenobe_engine::history::AsOf;

use crate::outbound::{OutboundError, UrlError};
use crate::triggers::source::SourceError;

pub use backup::BackupArguments;
pub use bench::BenchArguments;
pub use clock::ClockCommand;
pub use cost::CostArguments;
pub use export::ExportArguments;
pub use health::HealthArguments;
pub use history::HistoryArguments;
pub use import::ImportArguments;
pub use manual::{print_completions, print_man_pages, print_reference};
pub use moving::{MoveArguments, parse_place};
pub use partitions::PartitionsArguments;
pub use restore::RestoreArguments;
pub use sql::SqlArguments;
pub use status::StatusArguments;
pub use tail::TailArguments;
pub use test_control::TestCommand;
pub use throughput::ThroughputArguments;
pub use top::TopArguments;
pub use trigger::TriggerCommand;

#[derive(Debug, Subcommand)]
pub enum StreamCommand {
    /// Print a table's changes as they happen
    Tail(TailArguments),
}

/// A time on the command line.
fn time_argument(text: &str) -> Result<AsOf, String> {
    zenobe_api::parse_time(text)
        .ok_or_else(|| format!("`{text}` is not a time such as 2026-11-16T08:00:00Z or 1794816000"))
}

#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
    #[error("--endpoint: {0}")]
    Endpoint(#[from] UrlError),
    #[error("{0}; is the server running?")]
    Outbound(#[from] OutboundError),
    #[error("{0}")]
    Refused(String),
    #[error("cannot read the stream: {0}")]
    Source(#[from] SourceError),
    #[error("cannot print: {0}")]
    Output(std::io::Error),
    #[error("cannot write man pages to {}: {error}", path.display())]
    ManPages { path: std::path::PathBuf, error: std::io::Error },
    #[error("{0}")]
    Move(#[from] zenobe_database::MoveError),
    #[error("{0}")]
    Backup(#[from] zenobe_backup::BackupError),
    #[error("{0}")]
    Bench(#[from] bench::BenchError),
    #[error("{0}")]
    Sql(#[from] sql::SqlError),
    #[error("{0}")]
    Import(#[from] import::ImportError),
    #[error("{0}")]
    Replay(#[from] test_control::ReplayError),
    #[error("{0}")]
    Export(#[from] export::ExportError),
    #[error("{0}")]
    Prices(#[from] cost::PricesError),
}

pub fn run_trigger(command: TriggerCommand) -> Result<(), CommandError> {
    runtime()?.block_on(trigger::run(command))
}

pub fn run_clock(command: ClockCommand) -> Result<(), CommandError> {
    runtime()?.block_on(clock::run(command))
}

pub fn run_test(command: TestCommand) -> Result<(), CommandError> {
    runtime()?.block_on(test_control::run(command))
}

pub fn run_status(arguments: StatusArguments) -> Result<(), CommandError> {
    runtime()?.block_on(status::run(arguments))
}

pub fn run_history(arguments: HistoryArguments) -> Result<(), CommandError> {
    runtime()?.block_on(history::run(arguments))
}

pub fn run_partitions(arguments: PartitionsArguments) -> Result<(), CommandError> {
    runtime()?.block_on(partitions::run(arguments))
}

pub fn run_throughput(arguments: ThroughputArguments) -> Result<(), CommandError> {
    runtime()?.block_on(throughput::run(arguments))
}

pub fn run_cost(arguments: CostArguments) -> Result<(), CommandError> {
    runtime()?.block_on(cost::run(arguments))
}

pub fn run_top(arguments: TopArguments) -> Result<(), CommandError> {
    runtime()?.block_on(top::run(arguments))
}

pub fn run_stream(command: StreamCommand) -> Result<(), CommandError> {
    let StreamCommand::Tail(arguments) = command;
    runtime()?.block_on(tail::run(arguments))
}

pub fn run_health(arguments: &HealthArguments) -> Result<(), CommandError> {
    runtime()?.block_on(health::run(arguments))
}

pub fn run_move(arguments: &MoveArguments) -> Result<(), CommandError> {
    runtime()?.block_on(moving::run(arguments))
}

pub fn run_backup(arguments: &BackupArguments) -> Result<(), CommandError> {
    runtime()?.block_on(backup::run(arguments))
}

pub fn run_restore(arguments: &RestoreArguments) -> Result<(), CommandError> {
    runtime()?.block_on(restore::run(arguments))
}

pub fn run_bench(arguments: &BenchArguments) -> Result<(), CommandError> {
    Ok(bench::run(arguments)?)
}

pub fn run_sql(arguments: SqlArguments) -> Result<(), CommandError> {
    Ok(sql::run(arguments)?)
}

pub fn run_import(arguments: &ImportArguments) -> Result<(), CommandError> {
    Ok(import::run(arguments)?)
}

pub fn run_export(arguments: &ExportArguments) -> Result<(), CommandError> {
    Ok(export::run(arguments)?)
}

fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().map_err(CommandError::Runtime)
}

/// Prints a line. If the reader has closed the pipe, the command ends without an error.
fn print_line(line: &str) -> Result<(), CommandError> {
    print_bytes(format!("{line}\n").as_bytes())
}

fn print_bytes(bytes: &[u8]) -> Result<(), CommandError> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        outcome => outcome.map_err(CommandError::Output),
    }
}
