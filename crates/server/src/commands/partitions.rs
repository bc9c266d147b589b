//! `zenobe partitions`: the partitions of a table, and what they consumed.

use clap::Args;
use hyper::Method;
use serde_json::Value;

use super::server_connection::{ConnectionArguments, ServerConnection};
use super::{CommandError, print_line};

#[derive(Debug, Args)]
#[command(after_help = "Example:
  zenobe partitions Orders

Units and throttle events are those of the server that answers, since it started. Partitions are ranges of hashes of partition keys.")]
pub struct PartitionsArguments {
    /// Name of the table
    table: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub async fn run(arguments: PartitionsArguments) -> Result<(), CommandError> {
    let connection = ServerConnection::new(&arguments.connection)?;
    let path = format!("partitions/{}", arguments.table);
    let report = connection.admin(Method::GET, &path, None).await?;
    if arguments.json {
        return print_line(&report.to_string());
    }
    describe(&report).iter().try_for_each(|line| print_line(line))
}

fn describe(report: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for resource in list(&report["resources"]) {
        let what = match resource["index"].as_str() {
            None => format!("Table {}", text(&report["table"])),
            Some(index) => format!("Index {index}"),
        };
        let [read, write] = ["read", "write"].map(|access| resource[access].clone());
        let partitions = list(&resource["partitions"]);
        lines.push(format!(
            "{what}: {} read and {} write units per second, {} and {} left, throughput mode {}, {} partitions",
            read["units_per_second"],
            write["units_per_second"],
            read["units_left"],
            write["units_left"],
            text(&resource["mode"]),
            partitions.len(),
        ));
        lines.push(format!(
            "  {:>6}  {:<34}{:>12}{:>14}{:>14}{:>12}",
            "id", "first hash", "bytes", "units read", "units written", "throttled"
        ));
        for partition in partitions {
            let inside = partition["begins_inside_collection"] == true;
            let hash =
                format!("{}{}", text(&partition["first_hash"]), if inside { "+" } else { "" });
            let events = ["read_throttle_events", "write_throttle_events"];
            let throttled: u64 = events.iter().filter_map(|it| partition[it].as_u64()).sum();
            lines.push(format!(
                "  {:>6}  {hash:<34}{:>12}{:>14}{:>14}{throttled:>12}",
                partition["id"].to_string(),
                partition["size_bytes"].to_string(),
                partition["read_units"].to_string(),
                partition["write_units"].to_string(),
            ));
        }
    }
    lines
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn partitions_are_listed_with_what_they_consumed() {
        let flow = |units: u64, left: i64| json!({"units_per_second": units, "units_left": left});
        let partition = json!({
            "id": 3, "first_hash": "40000000000000000000000000000000", "size_bytes": 10,
            "begins_inside_collection": true, "read_units": 1.5, "write_units": 2.0,
            "read_throttle_events": 3, "write_throttle_events": 4,
        });
        let report = json!({"table": "Orders", "resources": [
            {"index": null, "mode": "observe", "read": flow(5, 5), "write": flow(1, -3),
             "partitions": [partition]},
            {"index": "by-owner", "mode": "observe", "read": flow(1, 1), "write": flow(1, 1),
             "partitions": []},
        ]});
        assert_eq!(
            describe(&report),
            [
                "Table Orders: 5 read and 1 write units per second, 5 and -3 left, throughput mode observe, 1 partitions",
                "      id  first hash                               bytes    units read units written   throttled",
                "       3  40000000000000000000000000000000+           10           1.5           2.0           7",
                "Index by-owner: 1 read and 1 write units per second, 1 and 1 left, throughput mode observe, 0 partitions",
                "      id  first hash                               bytes    units read units written   throttled",
            ]
        );
    }
}
