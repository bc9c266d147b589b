//! `zenobe throughput`: what happens to requests of a table that DynamoDB would throttle.

use clap::{Args, ValueEnum};
use hyper::Method;
use serde_json::{Value, json};

use super::server_connection::{ConnectionArguments, ServerConnection};
use super::{CommandError, print_line};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zenobe throughput Orders            show what happens
  zenobe throughput Orders enforce    refuse them, as DynamoDB does
  zenobe throughput Orders default    as the server's --throughput says

The mode is kept with the table, as its tag zenobe:throughput.")]
pub struct ThroughputArguments {
    /// Name of the table
    table: String,
    /// What to do with requests that exceed the throughput of the table, an index or a partition
    #[arg(value_enum)]
    mode: Option<RequestedMode>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RequestedMode {
    /// Serve them, and count nothing
    Off,
    /// Serve them, and count them
    Observe,
    /// Refuse them
    Enforce,
    /// Do what the server's --throughput says
    Default,
}

impl RequestedMode {
    fn name(self) -> &'static str {
        match self {
            RequestedMode::Off => "off",
            RequestedMode::Observe => "observe",
            RequestedMode::Enforce => "enforce",
            RequestedMode::Default => "default",
        }
    }
}

pub async fn run(arguments: ThroughputArguments) -> Result<(), CommandError> {
    let connection = ServerConnection::new(&arguments.connection)?;
    let path = format!("throughput/{}", arguments.table);
    let answer = match arguments.mode {
        None => connection.admin(Method::GET, &path, None).await?,
        Some(mode) => {
            let request = json!({ "mode": mode.name() });
            connection.admin(Method::PUT, &path, Some(&request)).await?
        }
    };
    print_line(&if arguments.json { answer.to_string() } else { describe(&answer) })
}

fn describe(answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    let source = match (text("own_mode"), text("mode")) {
        (own, _) if own.is_empty() => "by the server's --throughput".to_owned(),
        (own, mode) if own == mode => "by the table's tag".to_owned(),
        (own, mode) if mode == "enforce" => {
            format!("by the server's --throughput, which the table's tag {own} can't loosen")
        }
        (own, _) => format!("for its Contributor Insights; the table's tag says {own}"),
    };
    format!("{}: {} ({source})", text("table"), text("mode"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_shown_with_its_source() {
        let own = json!({"table": "Orders", "mode": "enforce", "own_mode": "enforce"});
        assert_eq!(describe(&own), "Orders: enforce (by the table's tag)");
        let inherited = json!({"table": "Orders", "mode": "observe", "own_mode": null});
        assert_eq!(describe(&inherited), "Orders: observe (by the server's --throughput)");
        let overridden = json!({"table": "Orders", "mode": "enforce", "own_mode": "off"});
        assert_eq!(
            describe(&overridden),
            "Orders: enforce (by the server's --throughput, which the table's tag off can't loosen)"
        );
        let watched = json!({"table": "Orders", "mode": "observe", "own_mode": "off"});
        assert_eq!(
            describe(&watched),
            "Orders: observe (for its Contributor Insights; the table's tag says off)"
        );
    }
}
