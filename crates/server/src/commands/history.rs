//! `zenobe history`: what an item was, and what each change changed.

use clap::Args;
use hyper::Method;
use serde_json::{Value, json};

use super::server_connection::{ConnectionArguments, ServerConnection};
use super::{CommandError, print_line};
use crate::time::iso8601;

#[derive(Debug, Args)]
#[command(after_help = "Example:
  zenobe history Orders '{\"pk\": {\"S\": \"order-1\"}}'

The table must have point-in-time recovery. Newer versions come first; lines with - and + show what a change removed and added.")]
pub struct HistoryArguments {
    /// Name of the table
    table: String,
    /// Primary key of the item, in DynamoDB's JSON
    #[arg(value_name = "KEY-JSON")]
    key: String,
    /// Maximum number of versions
    #[arg(long, default_value_t = 20, value_name = "NUMBER")]
    limit: u32,
    /// Print the versions as JSON, with the whole items
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub async fn run(arguments: HistoryArguments) -> Result<(), CommandError> {
    let key: Value = serde_json::from_str(&arguments.key).map_err(|error| {
        let example = r#"{"pk": {"S": "order-1"}}"#;
        CommandError::Refused(format!(
            "KEY-JSON is not valid JSON ({error}); write it as in {example}"
        ))
    })?;
    let body = json!({"TableName": arguments.table, "Key": key, "Limit": arguments.limit});
    let connection = ServerConnection::new(&arguments.connection)?;
    let history = connection.admin(Method::POST, "history", Some(&body)).await?;
    if arguments.json {
        return print_line(&history["Versions"].to_string());
    }
    describe(&history).iter().try_for_each(|line| print_line(line))
}

fn describe(history: &Value) -> Vec<String> {
    let versions = history["Versions"].as_array().map_or(&[][..], Vec::as_slice);
    let mut lines = Vec::new();
    for version in versions {
        lines.push(heading(version, &history["EarliestRestorableDateTime"]));
        for attribute in version["Attributes"].as_array().into_iter().flatten() {
            let name = attribute["Name"].as_str().unwrap_or_default();
            for (sign, member) in [("-", "Old"), ("+", "New")] {
                if let Some(value) = attribute.get(member) {
                    lines.push(format!("  {sign} {name}: {value}"));
                }
            }
        }
    }
    if history.get("Before").is_some() {
        lines.push("There are older versions; --limit shows more.".to_owned());
    }
    lines
}

fn heading(version: &Value, earliest: &Value) -> String {
    let what = match version["Change"].as_str() {
        Some("INSERT") => "created",
        Some("MODIFY") => "changed",
        Some("REMOVE") => "deleted",
        _ if version.get("Item").is_some() => "was there",
        _ => "was not there",
    };
    match version["At"].as_f64() {
        Some(at) => format!("{} {what}", time(at)),
        None => format!("{} {what}, and perhaps earlier", time(earliest.as_f64().unwrap_or(0.0))),
    }
}

fn time(seconds: f64) -> String {
    iso8601((seconds * 1_000.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_shown_as_differences() {
        let history = json!({
            "EarliestRestorableDateTime": 0,
            "Versions": [
                {"At": 86_401.5, "Change": "REMOVE", "Attributes": [{"Name": "a", "Old": {"N": "2"}}]},
                {"At": 86_400, "Change": "MODIFY", "Item": {"a": {"N": "2"}}, "Attributes": [
                    {"Name": "a", "Old": {"N": "1"}, "New": {"N": "2"}}]},
                {"Change": "UNKNOWN", "Item": {"a": {"N": "1"}}},
            ],
            "Before": "1",
        });
        assert_eq!(
            describe(&history),
            [
                "1970-01-02T00:00:01.500Z deleted",
                "  - a: {\"N\":\"2\"}",
                "1970-01-02T00:00:00.000Z changed",
                "  - a: {\"N\":\"1\"}",
                "  + a: {\"N\":\"2\"}",
                "1970-01-01T00:00:00.000Z was there, and perhaps earlier",
                "There are older versions; --limit shows more.",
            ]
        );
    }
}
