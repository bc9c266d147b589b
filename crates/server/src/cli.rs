//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{BenchArguments, StreamCommand, TriggerCommand};
use crate::config::Options;

/// A database that speaks Amazon DynamoDB's API.
#[derive(Debug, Parser)]
#[command(name = "zenobe", version, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server
    Serve(Box<ServeArguments>),
    /// Deliver a table's stream to an HTTP endpoint
    #[command(subcommand)]
    Trigger(TriggerCommand),
    /// Look at streams
    #[command(subcommand)]
    Stream(StreamCommand),
    /// Load any DynamoDB endpoint and measure it
    Bench(Box<BenchArguments>),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Every option can also be set by its environment variable or by its name in the TOML file \
(for example `cache-mb = 512`). A flag wins over the environment, the environment over the file.\n\n\
Example:\n  zenobe serve --listen 127.0.0.1:8000 --data ./zenobe-data\n  \
aws dynamodb list-tables --endpoint-url http://127.0.0.1:8000 --region us-east-1"
)]
pub struct ServeArguments {
    /// TOML file with options [env: ZENOBE_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub options: Options,
}
