//! `zenobe trigger`: adds, shows and removes triggers of a running server.

use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::{Map, Value, json};

use super::server_connection::{ConnectionArguments, ServerConnection};
use super::{CommandError, print_line};

#[derive(Debug, Subcommand)]
pub enum TriggerCommand {
    /// Add a trigger; it starts at once and survives server restarts
    #[command(after_help = ADD_EXAMPLES)]
    Add(Box<AddArguments>),
    /// List the triggers
    #[command(after_help = "Example:\n  zenobe trigger list")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Remove a trigger and its checkpoints
    #[command(after_help = "Example:\n  zenobe trigger remove order-mails")]
    Remove {
        name: String,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
    /// Show a trigger's settings, progress and last problem
    #[command(after_help = "Example:\n  zenobe trigger status order-mails")]
    Status {
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        connection: ConnectionArguments,
    },
}

const ADD_EXAMPLES: &str = "\
Examples:
  zenobe trigger add order-mails --table Orders --url http://127.0.0.1:9000/orders

  zenobe trigger add paid-orders --table Orders --url http://127.0.0.1:9000/2015-03-31/functions/function/invocations \\
    --filter '{\"eventName\":[\"MODIFY\"],\"dynamodb\":{\"NewImage\":{\"state\":{\"S\":[\"paid\"]}}}}' \\
    --batch-size 10 --maximum-retry-attempts 5 --bisect-on-error --dead-letter file:paid-orders.jsonl";

#[derive(Debug, Args)]
pub struct AddArguments {
    /// Name of the trigger
    name: String,
    /// Table whose stream to deliver
    #[arg(long)]
    table: String,
    /// Endpoint that receives {"Records":[…]} by POST
    #[arg(long)]
    url: String,
    /// Maximum records per delivery, 1 to 10000 [default: 100]
    #[arg(long, value_name = "COUNT")]
    batch_size: Option<u64>,
    /// How long to wait for a batch to fill [default: 0]
    #[arg(long, value_name = "MS")]
    batching_window_ms: Option<u64>,
    /// TRIM_HORIZON, LATEST or AT_TIMESTAMP [default: TRIM_HORIZON]
    #[arg(long, value_name = "POSITION")]
    starting_position: Option<String>,
    /// Seconds since the epoch, for AT_TIMESTAMP
    #[arg(long, value_name = "SECONDS")]
    starting_timestamp: Option<f64>,
    /// Pattern in Lambda's event filtering syntax; may be repeated, and any match delivers the record
    #[arg(long = "filter", value_name = "JSON")]
    filters: Vec<String>,
    /// Retries before a batch is given up; -1 for no limit [default: -1]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    maximum_retry_attempts: Option<i64>,
    /// Age at which records are given up; -1 for no limit [default: -1]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    maximum_record_age_seconds: Option<i64>,
    /// Split a failing batch and try each half
    #[arg(long)]
    bisect_on_error: bool,
    /// Read {"batchItemFailures":[{"itemIdentifier":"…"}]} in answers
    #[arg(long)]
    report_batch_item_failures: bool,
    /// Where given-up records go: a URL, or a file (JSON lines) below the server's --dead-letter-directory
    #[arg(long, value_name = "FILE|URL")]
    dead_letter: Option<String>,
    /// How long the endpoint may take to answer [default: 30000]
    #[arg(long, value_name = "MS")]
    timeout_ms: Option<u64>,
    /// Pause after the first failure; it doubles with each further failure [default: 200]
    #[arg(long, value_name = "MS")]
    backoff_ms: Option<u64>,
    /// Longest pause between attempts [default: 30000]
    #[arg(long, value_name = "MS")]
    backoff_max_ms: Option<u64>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

impl AddArguments {
    /// Only the settings that were given: the server has the defaults and the checks.
    fn to_json(&self) -> Value {
        let mut settings = Map::new();
        let mut set = |name: &str, value: Value| {
            if !value.is_null() {
                settings.insert(name.to_owned(), value);
            }
        };
        set("name", json!(self.name));
        set("table", json!(self.table));
        set("url", json!(self.url));
        set("batch_size", json!(self.batch_size));
        set("batching_window_ms", json!(self.batching_window_ms));
        set("starting_position", json!(self.starting_position));
        set("starting_timestamp", json!(self.starting_timestamp));
        set("filters", json!(self.filters));
        set("maximum_retry_attempts", json!(self.maximum_retry_attempts));
        set("maximum_record_age_seconds", json!(self.maximum_record_age_seconds));
        set("bisect_on_error", json!(self.bisect_on_error));
        set("report_batch_item_failures", json!(self.report_batch_item_failures));
        set("dead_letter", json!(self.dead_letter));
        set("timeout_ms", json!(self.timeout_ms));
        set("backoff_ms", json!(self.backoff_ms));
        set("backoff_max_ms", json!(self.backoff_max_ms));
        Value::Object(settings)
    }
}

pub async fn run(command: TriggerCommand) -> Result<(), CommandError> {
    match command {
        TriggerCommand::Add(arguments) => add(&arguments).await,
        TriggerCommand::List { json, connection } => list(json, &connection).await,
        TriggerCommand::Remove { name, connection } => {
            let connection = ServerConnection::new(&connection)?;
            connection.admin(Method::DELETE, &format!("triggers/{name}"), None).await?;
            print_line(&format!("removed {name}"))
        }
        TriggerCommand::Status { name, json, connection } => {
            let connection = ServerConnection::new(&connection)?;
            let status = connection.admin(Method::GET, &format!("triggers/{name}"), None).await?;
            match json {
                true => print_line(&format!("{status:#}")),
                false => print_status(&status),
            }
        }
    }
}

async fn add(arguments: &AddArguments) -> Result<(), CommandError> {
    let connection = ServerConnection::new(&arguments.connection)?;
    let status = connection.admin(Method::POST, "triggers", Some(&arguments.to_json())).await?;
    let trigger = &status["trigger"];
    print_line(&format!(
        "added {}: the stream of {} goes to {}",
        text(&trigger["name"]),
        text(&trigger["table"]),
        text(&trigger["url"])
    ))?;
    match status["hint"].as_str() {
        Some(hint) => print_line(&format!("note: {hint}")),
        None => Ok(()),
    }
}

async fn list(json: bool, connection: &ConnectionArguments) -> Result<(), CommandError> {
    let connection = ServerConnection::new(connection)?;
    let answer = connection.admin(Method::GET, "triggers", None).await?;
    if json {
        return print_line(&format!("{:#}", answer["triggers"]));
    }
    let triggers = answer["triggers"].as_array().map(Vec::as_slice).unwrap_or_default();
    if triggers.is_empty() {
        return print_line(
            "there are no triggers; `zenobe trigger add --help` shows how to add one",
        );
    }
    for status in triggers {
        let trigger = &status["trigger"];
        print_line(&format!(
            "{}  {} -> {}  {}, {} delivered, {} behind",
            text(&trigger["name"]),
            text(&trigger["table"]),
            text(&trigger["url"]),
            text(&status["state"]),
            status["records_delivered"],
            seconds(&status["iterator_age_ms"])
        ))?;
    }
    Ok(())
}

fn print_status(status: &Value) -> Result<(), CommandError> {
    let line = |name: &str, value: String| print_line(&format!("{name:<28}{value}"));
    line("state", text(&status["state"]))?;
    line("behind", seconds(&status["iterator_age_ms"]))?;
    for counter in [
        "records_delivered",
        "records_filtered",
        "deliveries_failed",
        "records_dead_lettered",
        "records_discarded",
        "records_trimmed",
        "shards_trimmed",
    ] {
        line(counter, status[counter].to_string())?;
    }
    line("last_problem", status["last_problem"].as_str().unwrap_or("none").to_owned())?;
    line("origin", text(&status["origin"]))?;
    for (name, value) in status["trigger"].as_object().into_iter().flatten() {
        line(name, value.as_str().map_or_else(|| value.to_string(), str::to_owned))?;
    }
    for shard in status["shards"].as_array().into_iter().flatten() {
        line("shard", format!("{} {}", text(&shard["shard"]), text(&shard["position"])))?;
    }
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn seconds(milliseconds: &Value) -> String {
    format!("{:.1} s", milliseconds.as_f64().unwrap_or_default() / 1_000.0)
}
