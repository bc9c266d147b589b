//! Measures the server in ways that anybody can repeat: `cargo xtask compare` and `cargo xtask
//! soak`.
//!
//! `compare` measures everything that the project has a target for. Besides the server, it measures
//!
//! - its two **limits**: a bare `hyper` server that answers with a fixed body, and a bare loop that
//!   appends bytes to a file and syncs them,
//! - its **peers**: other programs that speak DynamoDB's API.
//!
//! Client and server share the machine, and absolute rates differ from day to day. Only ratios of
//! interleaved measurements mean anything.
//!
//! `soak` keeps one server under load for minutes while background work runs as well.

mod answers;
mod cleanup;
mod compare;
mod file_system;
mod load;
mod machine;
mod measure;
mod outcome;
mod progress;
mod provenance;
mod report;
mod rows;
mod soak;
mod subjects;
mod surroundings;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Measure the server.
#[derive(Parser)]
#[command(name = "zenobe-bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare the server with its limits and its peers
    Compare(compare::CompareOptions),
    /// Keep the server under mixed load for minutes, and watch it
    Soak(soak::SoakOptions),
    /// Run only the bare server, printing its address
    #[command(hide = true)]
    Bare { body: PathBuf },
}

/// The server's allocator, so that the bare one has no disadvantage.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Bare { body } => subjects::bare::run(&body).map(|()| true),
        Command::Compare(options) => compare::run(&options),
        Command::Soak(options) => soak::run(&options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            progress::say(&format!("zenobe-bench: {error}"));
            ExitCode::FAILURE
        }
    }
}
