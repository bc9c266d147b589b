//! What a server has recorded, from its JSON.

use std::ops::Range;

use hyper::Method;
use serde_json::Value;
use zenobe_api::Operation;
use zenobe_monitoring::cost::StorageClass;
use zenobe_monitoring::cost::estimate::{Stored, TableFacts};
use zenobe_monitoring::cost::needed_capacity::MinuteUse;
use zenobe_monitoring::cost::observed::{EntryCounts, EntryKey, ResourceUse, TableTraffic};

use super::super::CommandError;
use super::super::server_connection::ServerConnection;

/// When the server recorded, and what belongs to no table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub since_ms: u64,
    pub until_ms: u64,
    /// Ranges of minutes since the epoch.
    pub observed_minutes: Vec<Range<u64>>,
    pub stream_reads: u64,
    /// Whether the server meters any table.
    pub is_metered: bool,
}

/// Asks for each table separately, because a month of minutes makes a large response.
pub async fn fetch(
    connection: &ServerConnection,
    query: &str,
    table: Option<&str>,
    class: Option<StorageClass>,
) -> Result<(Recorded, Vec<(TableFacts, TableTraffic)>), CommandError> {
    let answer = connection.admin(Method::GET, &format!("cost?{query}"), None).await?;
    let mut recorded = recorded(&answer);
    let names = list(&answer["tables"]).iter().filter_map(Value::as_str);
    let names = names.filter(|name| table.is_none_or(|table| table == *name));
    let window = format!("since_ms={}&until_ms={}", recorded.since_ms, recorded.until_ms);
    let mut tables = Vec::new();
    for name in names {
        let path = format!("cost/{name}?{window}");
        let answer = connection.admin(Method::GET, &path, None).await?;
        tables.push(one_table(&answer, class)?);
    }
    if table.is_some() {
        // Reads of streams are those of all tables.
        recorded.stream_reads = 0;
    }
    Ok((recorded, tables))
}

fn recorded(answer: &Value) -> Recorded {
    let minutes = list(&answer["observed_minutes"]).iter();
    Recorded {
        since_ms: whole(&answer["since_ms"]),
        until_ms: whole(&answer["until_ms"]),
        observed_minutes: minutes.map(|range| whole(&range[0])..whole(&range[1])).collect(),
        stream_reads: whole(&answer["stream_reads"]),
        is_metered: answer["metered"] == true,
    }
}

fn one_table(
    answer: &Value,
    class: Option<StorageClass>,
) -> Result<(TableFacts, TableTraffic), CommandError> {
    let now = &answer["now"];
    let own_class = match now["table_class"].as_str() {
        Some("STANDARD_INFREQUENT_ACCESS") => StorageClass::InfrequentAccess,
        _ => StorageClass::Standard,
    };
    let stored = |value: &Value| Stored {
        size_bytes: whole(&value["size_bytes"]),
        items: whole(&value["items"]),
    };
    let facts = TableFacts {
        name: answer["table"].as_str().unwrap_or_default().to_owned(),
        exists: !now.is_null(),
        class: class.unwrap_or(own_class),
        global_indexes: list(&now["global_indexes"]).iter().filter_map(text).collect(),
        stored: stored(&now["stored"]),
        recoverable: stored(&now["recoverable"]),
        has_recovery: now["point_in_time_recovery"] == true,
        backups_size_bytes: whole(&answer["backups_size_bytes"]),
    };
    let mut traffic = TableTraffic::default();
    for entry in list(&answer["entries"]) {
        let operation = entry["operation"].as_str().and_then(Operation::from_name);
        let pattern = entry["pattern"].as_str().and_then(|pattern| pattern.parse().ok());
        let Some((operation, pattern)) = operation.zip(pattern) else {
            let message = format!(
                "the server has recorded {} by {}, which this version does not know; use the server's version of the command",
                entry["operation"], entry["pattern"]
            );
            return Err(CommandError::Refused(message));
        };
        let key = EntryKey { index: text(&entry["index"]), operation, pattern };
        traffic.entries.entry(key).or_default().add(&EntryCounts {
            requests: whole(&entry["requests"]),
            read_halves: halves(&entry["read_units"]),
            write_halves: halves(&entry["write_units"]),
            returned_items: whole(&entry["returned_items"]),
        });
    }
    for used in list(&answer["minutes"]) {
        let uses = ResourceUse { read: minutes(&used["read"]), write: minutes(&used["write"]) };
        traffic.uses.insert(text(&used["index"]), uses);
    }
    Ok((facts, traffic))
}

fn minutes(list_of_pairs: &Value) -> Vec<MinuteUse> {
    let pairs = list(list_of_pairs).iter();
    pairs.map(|pair| MinuteUse { minute: whole(&pair[0]), halves: halves(&pair[1]) }).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn halves(units: &Value) -> u64 {
    (units.as_f64().unwrap_or(0.0) * 2.0).round() as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn traffic_is_read_in_half_units() {
        let answer = json!({
            "table": "Orders",
            "now": {"table_class": "STANDARD_INFREQUENT_ACCESS", "global_indexes": ["by-owner"],
                "stored": {"size_bytes": 10, "items": 2}, "recoverable": {"size_bytes": 8, "items": 1},
                "point_in_time_recovery": true},
            "backups_size_bytes": 7,
            "entries": [{"index": "by-owner", "operation": "Query", "pattern": "partition key",
                "requests": 3, "read_units": 1.5, "write_units": 0.0, "returned_items": 9}],
            "minutes": [{"index": "by-owner", "read": [[29000000, 1.5]], "write": []}],
        });
        let (facts, traffic) = one_table(&answer, None).unwrap();
        assert_eq!(facts.class, StorageClass::InfrequentAccess);
        assert_eq!((facts.stored.size_bytes, facts.recoverable.items), (10, 1));
        assert!(facts.exists && facts.has_recovery);
        let (key, counts) = traffic.entries.first_key_value().unwrap();
        assert_eq!((key.operation, counts.read_halves), (Operation::Query, 3));
        let used = &traffic.uses[&Some("by-owner".to_owned())];
        assert_eq!(used.read, [MinuteUse { minute: 29_000_000, halves: 3 }]);
        let gone = json!({"table": "Gone"});
        let (facts, _) = one_table(&gone, Some(StorageClass::Standard)).unwrap();
        assert!(!facts.exists && facts.class == StorageClass::Standard);
        let later = json!({"entries": [{"operation": "Guess", "pattern": "key"}]});
        let error = one_table(&later, None).unwrap_err().to_string();
        assert!(error.contains("\"Guess\" by \"key\""), "{error}");
    }
}
