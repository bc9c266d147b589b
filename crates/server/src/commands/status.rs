//! `zenobe status`: a server's store and its standbys, the nodes on it, and which node does which background work.

use clap::Args;
use hyper::Method;
use serde_json::Value;

use super::server_connection::{ConnectionArguments, ServerConnection};
use super::{CommandError, print_line};
use crate::time::iso8601;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  zenobe status")]
pub struct StatusArguments {
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub async fn run(arguments: StatusArguments) -> Result<(), CommandError> {
    let connection = ServerConnection::new(&arguments.connection)?;
    let status = connection.admin(Method::GET, "status", None).await?;
    describe(&status).iter().try_for_each(|line| print_line(line))
}

fn describe(status: &Value) -> Vec<String> {
    let mut lines = describe_store(&status["store"]);
    lines.extend(describe_shipping(&status["shipping"]));
    for history in list(&status["history"]) {
        let (table, days) = (text(&history["table"]), &history["period_days"]);
        let (size_bytes, versions) = (&history["size_bytes"], &history["versions"]);
        let purpose = match days {
            Value::Null => "is being backed up".to_owned(),
            days => format!("can be restored within {days} days"),
        };
        lines.push(format!(
            "Table {table} {purpose}: {versions} earlier versions, {size_bytes} bytes."
        ));
    }
    for size in list(&status["backups"]) {
        let (table, size_bytes) = (text(&size["table"]), &size["size_bytes"]);
        let backups = match size["backups"].as_u64() {
            Some(1) => "1 backup".to_owned(),
            count => format!("{} backups", count.unwrap_or_default()),
        };
        lines.push(format!("Table {table} has {backups} with {size_bytes} bytes."));
    }
    for job in list(&status["jobs"]) {
        let (kind, table, items) = (text(&job["kind"]), text(&job["table"]), &job["items"]);
        let since = time(&job["started_at_ms"]);
        let article = if kind.starts_with(['e', 'i']) { "An" } else { "A" };
        lines.push(format!(
            "{article} {kind} of table {table} has been running since {since}: {items} items so far."
        ));
    }
    if status["shared"] != true {
        lines.push("This server has its store to itself.".to_owned());
        return lines;
    }
    if status["store"]["available"] == false {
        return lines;
    }
    let nodes = list(&status["nodes"]);
    lines.push(match nodes.len() {
        1 => "1 node uses it:".to_owned(),
        count => format!("{count} nodes share it:"),
    });
    for node in nodes {
        let is_this = if node["this"] == true { " (this one)" } else { "" };
        let state = if node["alive"] == true { "alive" } else { "silent" };
        let (started, clock) = (time(&node["started_at_ms"]), time(&node["clock_ms"]));
        let name = name_of(node);
        lines.push(format!("  {name}{is_this}: {state}, since {started}, last seen at {clock}"));
    }
    lines.push("Background work:".to_owned());
    for lease in list(&status["leases"]) {
        let holder = nodes.iter().find(|node| node["id"] == lease["node"]);
        let holder = holder.map_or_else(|| text(&lease["node"]), name_of);
        let (work, since) = (text(&lease["work"]), time(&lease["since_ms"]));
        lines.push(format!("  {work}: {holder}, since {since}"));
    }
    lines
}

fn describe_store(store: &Value) -> Vec<String> {
    let mut lines = vec![match (store["problem"].as_str(), store["write_failure"].as_str()) {
        (Some(problem), _) => format!("The store is unreachable: {problem}"),
        (None, Some(why)) => format!("The store refuses writes: {why}"),
        (None, None) => format!("The store is open, with {} bytes.", store["size_bytes"]),
    }];
    if let Some(server) = store["server"].as_str() {
        let round_trip = store["round_trip_us"].as_f64().unwrap_or_default() / 1_000.0;
        let host = text(&store["host"]);
        lines.push(format!("{server} answers at {host}, in {round_trip:.1} ms."));
        if list(&store["standbys"]).is_empty() {
            lines.push("It has no standbys.".to_owned());
        }
    }
    for standby in list(&store["standbys"]) {
        let (name, state) = (text(&standby["name"]), text(&standby["state"]));
        if state.is_empty() {
            lines.push(format!("  standby {name}: more is shown to members of pg_monitor only"));
            continue;
        }
        let waits = if standby["synchronous"] == true { ", commits wait for it" } else { "" };
        let lag = match (standby["lag_bytes"].as_u64(), standby["lag_ms"].as_u64()) {
            (Some(bytes), Some(ms)) => format!("{bytes} bytes and {ms} ms behind"),
            (Some(bytes), None) => format!("{bytes} bytes behind"),
            _ => "its lag is not known".to_owned(),
        };
        lines.push(format!("  standby {name}: {state}{waits}, {lag}"));
    }
    for replica in list(&store["replicas"]) {
        let host = text(&replica["host"]);
        lines.push(match replica["lag_ms_max"].as_u64() {
            Some(ms) => format!("  this node may read from {host}, at most {ms} ms behind"),
            None => format!("  this node can't read from {host} as a standby"),
        });
    }
    lines
}

fn describe_shipping(shipping: &Value) -> Vec<String> {
    let Some(to) = shipping["to"].as_str() else { return Vec::new() };
    let age_s = shipping["age_ms"].as_u64().unwrap_or_default() / 1_000;
    let mut lines = vec![match shipping["restorable_until_ms"].as_u64() {
        Some(until_ms) => {
            let (until, waiting) = (iso8601(until_ms), &shipping["waiting_bytes"]);
            format!(
                "The log is shipped to {to}: restorable until {until}, {age_s} s ago; {waiting} bytes wait."
            )
        }
        None => {
            let (done, total) = (&shipping["snapshot_bytes"], &shipping["snapshot_bytes_total"]);
            format!(
                "The log is shipped to {to}: the first backup of the files is under way, {done} of {total} bytes."
            )
        }
    }];
    if let Some(problem) = shipping["problem"].as_str() {
        lines.push(format!("  shipping fails, and is tried again: {problem}"));
    }
    if shipping["running"] == false {
        lines.push("  shipping has ended".to_owned());
    }
    lines
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The name that operators use for a node, or its id.
fn name_of(node: &Value) -> String {
    match node["name"].as_str() {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => text(&node["id"]),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn time(value: &Value) -> String {
    iso8601(value.as_u64().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_and_leases_are_listed() {
        let store = json!({"size_bytes": 7, "write_failure": null});
        let alone = json!({"shared": false, "nodes": [], "leases": [], "store": store});
        assert_eq!(
            describe(&alone),
            ["The store is open, with 7 bytes.", "This server has its store to itself."]
        );
        let with_history = json!({
            "shared": false,
            "store": store,
            "history": [
                {"table": "Orders", "period_days": 35, "size_bytes": 300, "versions": 2},
                {"table": "Users", "period_days": null, "size_bytes": 7, "versions": 1},
            ],
            "backups": [
                {"table": "Orders", "backups": 1, "size_bytes": 400},
                {"table": "Users", "backups": 3, "size_bytes": 0},
            ],
            "jobs": [{"kind": "restore", "id": "1", "table": "Past", "started_at_ms": 0, "items": 5}],
        });
        assert_eq!(
            describe(&with_history)[1..6],
            [
                "Table Orders can be restored within 35 days: 2 earlier versions, 300 bytes.",
                "Table Users is being backed up: 1 earlier versions, 7 bytes.",
                "Table Orders has 1 backup with 400 bytes.",
                "Table Users has 3 backups with 0 bytes.",
                "A restore of table Past has been running since 1970-01-01T00:00:00.000Z: 5 items so far.",
            ]
        );
        let node = |id: &str, name: &str, this| {
            json!({
                "id": id, "name": name, "this": this, "alive": this, "started_at_ms": 0,
                "clock_ms": 86_400_000,
            })
        };
        let shared = json!({
            "shared": true,
            "nodes": [node("1", "a", true), node("2", "", false)],
            "leases": [
                {"work": "expiry", "node": "1", "since_ms": 0},
                {"work": "tokens", "node": "3", "since_ms": 0},
            ],
            "store": store,
        });
        let (start, now) = ("1970-01-01T00:00:00.000Z", "1970-01-02T00:00:00.000Z");
        assert_eq!(
            describe(&shared)[1..],
            [
                "2 nodes share it:".to_owned(),
                format!("  a (this one): alive, since {start}, last seen at {now}"),
                format!("  2: silent, since {start}, last seen at {now}"),
                "Background work:".to_owned(),
                format!("  expiry: a, since {start}"),
                format!("  tokens: 3, since {start}"),
            ]
        );
    }

    #[test]
    fn shipping_is_described() {
        let mut shipping = json!({
            "to": "s3://b/p", "restorable_until_ms": 86_400_000, "age_ms": 2_300, "waiting_bytes": 12,
            "problem": null, "running": true,
        });
        let line = "The log is shipped to s3://b/p: restorable until 1970-01-02T00:00:00.000Z, 2 s ago; 12 bytes wait.";
        assert_eq!(describe_shipping(&shipping), [line]);
        shipping["problem"] = json!("no route");
        assert_eq!(
            describe_shipping(&shipping)[1],
            "  shipping fails, and is tried again: no route"
        );
        shipping["restorable_until_ms"].take();
        assert!(
            describe_shipping(&shipping)[0].contains("the first backup of the files is under way")
        );
        assert!(describe_shipping(&Value::Null).is_empty());
    }

    #[test]
    fn a_store_across_the_network_is_described() {
        let mut store = json!({
            "available": true, "problem": null, "size_bytes": 7, "write_failure": null,
            "server": "PostgreSQL 18.1", "host": "db1:5432", "round_trip_us": 340,
            "standbys": [
                {"name": "b", "state": "streaming", "synchronous": true, "lag_bytes": 0, "lag_ms": 2},
                {"name": "c", "state": "", "synchronous": false, "lag_bytes": null, "lag_ms": null},
            ],
            "replicas": [{"host": "db1:5432", "lag_ms_max": null}, {"host": "db2:5432", "lag_ms_max": 80}],
        });
        assert_eq!(
            describe_store(&store),
            [
                "The store is open, with 7 bytes.",
                "PostgreSQL 18.1 answers at db1:5432, in 0.3 ms.",
                "  standby b: streaming, commits wait for it, 0 bytes and 2 ms behind",
                "  standby c: more is shown to members of pg_monitor only",
                "  this node can't read from db1:5432 as a standby",
                "  this node may read from db2:5432, at most 80 ms behind",
            ]
        );
        store = json!({"available": false, "problem": "no answer", "size_bytes": 7});
        let status = json!({"shared": true, "nodes": [], "leases": [], "store": store});
        assert_eq!(describe(&status), ["The store is unreachable: no answer"]);
    }
}
