//! The command line.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::commands::{
    BackupArguments, BenchArguments, ClockCommand, CostArguments, ExportArguments, HealthArguments,
    HistoryArguments, ImportArguments, MoveArguments, PartitionsArguments, RestoreArguments,
    SqlArguments, StatusArguments, StreamCommand, TestCommand, ThroughputArguments, TopArguments,
    TriggerCommand,
};
use crate::config::{self, LocalFlags, Options};

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
    /// Run the server as a replacement for DynamoDB Local, with its flags
    Local(Box<LocalArguments>),
    /// Deliver a table's stream to an HTTP endpoint
    #[command(subcommand)]
    Trigger(TriggerCommand),
    /// Print a table's changes as they happen
    #[command(subcommand)]
    Stream(StreamCommand),
    /// Show the server's clock, and confirm it after a jump
    #[command(subcommand)]
    Clock(ClockCommand),
    /// Copy, restore and empty a server's database, and inject faults, for tests
    #[command(subcommand)]
    Test(TestCommand),
    /// Show a server's store, histories, backups and jobs, the nodes that share the store, and their background work
    Status(StatusArguments),
    /// Show the versions of an item, and what changed in each
    History(HistoryArguments),
    /// Show what a server does, second by second: operations, tables, keys, latency, units
    Top(TopArguments),
    /// Show the partitions of a table, and what they consumed
    Partitions(PartitionsArguments),
    /// Show or set what happens to a table's requests that DynamoDB would throttle
    Throughput(ThroughputArguments),
    /// Show what the traffic of a server would cost on AWS, and where the money goes
    Cost(Box<CostArguments>),
    /// Move a database to another store, while it is stopped or while it is served
    Move(MoveArguments),
    /// Back up a running server's whole database; list, verify and prune backups
    Backup(Box<BackupArguments>),
    /// Restore a whole database from a backup, or as of a second from what a server has shipped
    Restore(Box<RestoreArguments>),
    /// Measure any DynamoDB endpoint under load
    Bench(Box<BenchArguments>),
    /// Check whether a server can read and write
    Health(HealthArguments),
    /// Query tables with PartiQL, in a shell or from a script
    Sql(Box<SqlArguments>),
    /// Import items from files: DynamoDB exports, Ion, CSV, JSON, NoSQL Workbench models, DynamoDB Local databases
    Import(Box<ImportArguments>),
    /// Export a table to files for analysis: Parquet, CSV, DynamoDB's JSON, Ion
    Export(Box<ExportArguments>),
    /// Print shell completions
    #[command(after_help = "Example:\n  zenobe completions bash > /etc/bash_completion.d/zenobe")]
    Completions { shell: Shell },
    /// Print a man page, or write all of them
    #[command(
        after_help = "Examples:\n  zenobe man serve | man -l -\n  zenobe man --output /usr/local/share/man/man1"
    )]
    Man(ManArguments),
    /// Print the reference of all options as Markdown
    #[command(hide = true)]
    ConfigReference,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Each option can also be set by its environment variable or by its name in the TOML file \
(for example `cache-mb = 512`). Flags override the environment, which overrides the file.\n\n\
Example:\n  zenobe serve --listen 127.0.0.1:8000 --data ./zenobe-data\n  \
aws dynamodb list-tables --endpoint-url http://127.0.0.1:8000 --region us-east-1"
)]
pub struct ServeArguments {
    /// TOML file with options and triggers
    #[arg(long, env = "ZENOBE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub options: Options,
}

#[derive(Debug, Args)]
#[command(
    after_help = "DynamoDB Local's flags work with one dash, and Java's own arguments before them are ignored. In this mode no request needs a \
signature, and GET / answers 400, as start-up probes expect. All options of `zenobe serve` work too. \
docs/dynamodb-local.md lists the differences.\n\n\
Examples:\n  zenobe local -inMemory -sharedDb -port 8000\n  \
zenobe -Djava.library.path=./DynamoDBLocal_lib -jar DynamoDBLocal.jar -sharedDb -dbPath ./data"
)]
pub struct LocalArguments {
    #[command(flatten)]
    pub flags: LocalFlags,
    #[command(flatten)]
    pub serve: ServeArguments,
}

#[derive(Debug, Args)]
pub struct ManArguments {
    /// Command to print the page of, such as `serve` or `trigger add`
    pub command: Vec<String>,
    /// Write all pages to this directory, one file each
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "command")]
    pub output: Option<PathBuf>,
}

/// The whole command line, set up for the environment of this process.
pub fn command() -> clap::Command {
    config::heed(Arguments::command())
}
