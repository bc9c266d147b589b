//! `zenobe test`: what a test may do to a server that was started with `--test-control`.

mod replay;

use clap::Subcommand;
use hyper::Method;
use serde_json::{Value, json};

use super::server_connection::{ConnectionArguments, ServerConnection};
use super::{CommandError, print_line, time_argument};
use crate::test_control::{kinds, parse_ms};

pub use replay::{ReplayArguments, ReplayError};

#[derive(Debug, Subcommand)]
pub enum TestCommand {
    /// Take, list and remove snapshots of the whole database
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Return to a snapshot
    #[command(
        after_help = "Example:\n  zenobe test snapshot take seeded\n  zenobe test restore seeded"
    )]
    Restore {
        /// The snapshot's name
        name: String,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Empty the whole database, or one table
    #[command(after_help = "Examples:\n  zenobe test reset\n  zenobe test reset --table Orders")]
    Reset {
        /// Empty only this table; its definition stays
        #[arg(long, value_name = "NAME")]
        table: Option<String>,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Serve copies of the database, each at an endpoint of its own
    #[command(subcommand)]
    Fork(ForkCommand),
    /// Make requests fail, wait or read old data
    #[command(subcommand)]
    Fault(FaultCommand),
    /// Move the clock of a server that was started with --driven-clock
    #[command(
        after_help = "Examples:\n  zenobe test clock --advance 1h\n  zenobe test clock --set 2030-01-01T00:00:00Z"
    )]
    Clock {
        /// How far to move it, such as 500ms, 30s, 5m or 24h
        #[arg(
            long,
            value_name = "TIME",
            value_parser = time,
            required_unless_present = "set",
            conflicts_with = "set"
        )]
        advance: Option<u64>,
        /// Time to move it to: 2030-01-01T00:00:00Z, or seconds since 1970. It moves forward only
        #[arg(long, value_name = "TIME", value_parser = moment)]
        set: Option<u64>,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Close the open shards of a table's stream; their children take over
    #[command(after_help = "Example:\n  zenobe test rollover Orders")]
    Rollover {
        /// The table's name
        table: String,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Split the open shards of a table's stream: each closes, and two children take over
    #[command(after_help = "Example:\n  zenobe test split Orders")]
    Split {
        /// The table's name
        table: String,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Send recorded requests again, and compare how they are answered
    Replay(ReplayArguments),
}

#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Take a snapshot; an earlier one of that name is replaced
    #[command(after_help = "Example:\n  zenobe test snapshot take seeded")]
    Take {
        /// The snapshot's name: letters, digits, `-`, `_` and `.`
        name: String,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// List the snapshots
    #[command(after_help = "Example:\n  zenobe test snapshot list")]
    List {
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Remove a snapshot
    #[command(after_help = "Example:\n  zenobe test snapshot remove seeded")]
    Remove {
        /// The snapshot's name
        name: String,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
}

#[derive(Debug, Subcommand)]
pub enum ForkCommand {
    /// Serve a copy, and print its endpoint
    #[command(after_help = "Example:\n  export AWS_ENDPOINT_URL_DYNAMODB=$(zenobe test fork new)")]
    New {
        /// Copy this snapshot instead of the database as it is now
        #[arg(long, value_name = "NAME")]
        snapshot: Option<String>,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// List the forks with their endpoints
    #[command(after_help = "Example:\n  zenobe test fork list")]
    List {
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// End a fork
    #[command(after_help = "Example:\n  zenobe test fork end 1")]
    End {
        /// The fork's number, as listed
        id: u64,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
}

#[derive(Debug, Subcommand)]
pub enum FaultCommand {
    /// Add a rule
    #[command(
        after_help = format!("Kinds: {}.\n\n{ADD_EXAMPLES}", kinds())
    )]
    Add {
        /// The rule: pairs such as kind=throttle and rate=0.1
        #[arg(required = true, value_name = "NAME=VALUE")]
        rule: Vec<String>,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// List the rules, with how often each has matched and fired
    #[command(after_help = "Example:\n  zenobe test fault list")]
    List {
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Remove a rule
    #[command(after_help = "Example:\n  zenobe test fault remove 1")]
    Remove {
        /// The rule's number, as listed
        id: u64,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Remove all rules
    #[command(after_help = "Example:\n  zenobe test fault clear")]
    Clear {
        #[command(flatten)]
        connection: ConnectionArguments,
    },
}

const ADD_EXAMPLES: &str = "Examples:\n  \
    zenobe test fault add kind=throttle table=Orders operation=PutItem rate=0.1\n  \
    zenobe test fault add kind=latency delay=exp:20ms\n  \
    zenobe test fault add kind=drop when=after times=1\n  \
    zenobe test fault add kind=stale table=Orders delay=uniform:10ms..500ms";

fn time(text: &str) -> Result<u64, String> {
    parse_ms(text)
        .ok_or_else(|| "expected a time up to a day, such as 500ms, 30s, 5m or 24h".into())
}

/// A time, in milliseconds. One without a fraction is the beginning of its second.
fn moment(text: &str) -> Result<u64, String> {
    const SECOND_MS: u64 = 1_000;
    let at_ms = time_argument(text)?.at_ms();
    Ok(match text.contains('.') {
        true => at_ms,
        false => at_ms / SECOND_MS * SECOND_MS,
    })
}

pub async fn run(command: TestCommand) -> Result<(), CommandError> {
    match command {
        TestCommand::Snapshot(command) => run_snapshot(command).await,
        TestCommand::Restore { name, connection } => {
            post(&connection, "restore", &json!({"snapshot": name})).await?;
            print_line(&format!("the database is as in snapshot {name}"))
        }
        TestCommand::Reset { table, connection } => {
            let body = table.as_ref().map_or_else(|| json!({}), |table| json!({"table": table}));
            post(&connection, "reset", &body).await?;
            let what = table.map_or("the database".to_owned(), |table| format!("table {table}"));
            print_line(&format!("{what} is empty"))
        }
        TestCommand::Fork(command) => run_fork(command).await,
        TestCommand::Fault(command) => run_fault(command).await,
        TestCommand::Clock { advance, set, connection } => {
            let body = match set {
                Some(set) => json!({"set_ms": set}),
                None => json!({"advance_ms": advance}),
            };
            let connection = ServerConnection::new(&connection)?;
            let clock = connection.admin(Method::POST, "clock", Some(&body)).await?;
            print_line(&crate::time::iso8601(clock["now_ms"].as_u64().unwrap_or_default()))
        }
        TestCommand::Rollover { table, connection } => {
            post(&connection, "rollover", &json!({"table": table})).await?;
            print_line(&format!("the stream of {table} has new shards"))
        }
        TestCommand::Split { table, connection } => {
            post(&connection, "split", &json!({"table": table})).await?;
            print_line(&format!("the stream of {table} has twice as many open shards"))
        }
        TestCommand::Replay(arguments) => replay::run(arguments).await,
    }
}

async fn run_snapshot(command: SnapshotCommand) -> Result<(), CommandError> {
    match command {
        SnapshotCommand::Take { name, connection } => {
            post(&connection, "snapshots", &json!({"name": name})).await?;
            print_line(&format!("took snapshot {name}"))
        }
        SnapshotCommand::List { connection } => {
            let listed = request(&connection, Method::GET, "snapshots", None).await?;
            let names = listed["snapshots"].as_array().into_iter().flatten();
            names.filter_map(Value::as_str).try_for_each(print_line)
        }
        SnapshotCommand::Remove { name, connection } => {
            let path = format!("snapshots/{name}");
            request(&connection, Method::DELETE, &path, None).await?;
            print_line(&format!("removed snapshot {name}"))
        }
    }
}

async fn run_fork(command: ForkCommand) -> Result<(), CommandError> {
    match command {
        ForkCommand::New { snapshot, connection } => {
            let body = snapshot.map_or_else(|| json!({}), |name| json!({"snapshot": name}));
            let fork = post(&connection, "forks", &body).await?;
            print_line(fork["endpoint"].as_str().unwrap_or_default())
        }
        ForkCommand::List { connection } => {
            let listed = request(&connection, Method::GET, "forks", None).await?;
            let forks = listed["forks"].as_array().into_iter().flatten();
            forks
                .map(|fork| format!("{}  {}", fork["id"], text(&fork["endpoint"])))
                .try_for_each(|line| print_line(&line))
        }
        ForkCommand::End { id, connection } => {
            request(&connection, Method::DELETE, &format!("forks/{id}"), None).await?;
            print_line(&format!("ended fork {id}"))
        }
    }
}

async fn run_fault(command: FaultCommand) -> Result<(), CommandError> {
    match command {
        FaultCommand::Add { rule, connection } => {
            let added = post(&connection, "faults", &json!({"rule": rule.join(" ")})).await?;
            print_line(&fault_line(&added))
        }
        FaultCommand::List { connection } => {
            let listed = request(&connection, Method::GET, "faults", None).await?;
            let faults = listed["faults"].as_array().into_iter().flatten();
            faults.map(fault_line).try_for_each(|line| print_line(&line))
        }
        FaultCommand::Remove { id, connection } => {
            request(&connection, Method::DELETE, &format!("faults/{id}"), None).await?;
            print_line(&format!("removed rule {id}"))
        }
        FaultCommand::Clear { connection } => {
            request(&connection, Method::DELETE, "faults", None).await?;
            print_line("removed all rules")
        }
    }
}

fn fault_line(fault: &Value) -> String {
    let rule = text(&fault["rule"]);
    let id =
        fault["id"].as_u64().map_or_else(|| text(&fault["tag"]).to_owned(), |id| id.to_string());
    match (fault["fired"].as_u64(), fault["matched"].as_u64()) {
        (Some(fired), Some(matched)) => format!("{id}  {rule}  fired {fired} of {matched}"),
        _ => format!("{id}  {rule}"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

async fn post(
    connection: &ConnectionArguments,
    path: &str,
    body: &Value,
) -> Result<Value, CommandError> {
    request(connection, Method::POST, path, Some(body)).await
}

async fn request(
    connection: &ConnectionArguments,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, CommandError> {
    ServerConnection::new(connection)?.admin(method, &format!("test/{path}"), body).await
}
