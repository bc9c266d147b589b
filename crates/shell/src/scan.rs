//! The warning before a statement that reads a whole table or index.

use serde_json::Value;
use zenobe_expression::partiql::{Parameters, SelectStatement, Statement, StatementKind};
use zenobe_load::{human_bytes, human_count};

/// The bytes that a strongly consistent read unit covers; an eventually consistent read takes half
/// a unit.
const UNIT_BYTES: u64 = 4 * 1024;
/// An on-demand table starts with this many partitions, and DynamoDB rounds up what it reads from
/// each.
const ON_DEMAND_PARTITIONS: u64 = 4;

/// The SELECT in a statement.
pub fn select(statement: &Statement) -> Option<&SelectStatement> {
    match &statement.kind {
        StatementKind::Select(select) => Some(select),
        _ => None,
    }
}

/// The warning for a statement that reads a whole table or index. `table` is the `Table` of
/// DescribeTable.
pub fn warning(statement: &Statement, table: &Value, consistent: bool) -> Option<String> {
    let select = select(statement)?;
    let index = select.source.index.as_deref();
    let source = match index {
        Some(name) => find_index(table, name)?,
        None => table,
    };
    if !scans(statement, select, partition_key(source)?) {
        return None;
    }
    let (items, bytes) = match index {
        Some(_) => (&source["ItemCount"], &source["IndexSizeBytes"]),
        None => (&source["ItemCount"], &source["TableSizeBytes"]),
    };
    let (items, bytes) = (items.as_u64().unwrap_or(0), bytes.as_u64().unwrap_or(0));
    let what = match index {
        Some(name) => format!("index {name} of table {}", select.source.table),
        None => format!("table {}", select.source.table),
    };
    let is_on_demand = table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST";
    let plural = if items == 1 { "" } else { "s" };
    Some(format!(
        "this statement scans {what}: {} item{plural}, {}, about {} read units to the end",
        human_count(items),
        human_bytes(bytes as f64),
        units_text(scan_units(bytes, is_on_demand && index.is_none(), consistent)),
    ))
}

/// Whether the planner finds no partition key. The endpoint rejects a statement that cannot be
/// bound.
fn scans(statement: &Statement, select: &SelectStatement, partition_key: &str) -> bool {
    let Some(condition) = &select.condition else { return true };
    let Ok(parameters) = Parameters::check(statement, &[]) else { return false };
    condition.bind(parameters).is_ok_and(|predicate| !predicate.pins(partition_key))
}

fn scan_units(bytes: u64, on_demand: bool, consistent: bool) -> f64 {
    let least = if on_demand { ON_DEMAND_PARTITIONS } else { 1 };
    let units = bytes.div_ceil(UNIT_BYTES).max(least) as f64;
    if consistent { units } else { units / 2.0 }
}

/// Units without superfluous digits.
pub fn units_text(units: f64) -> String {
    match units {
        ..1000.0 => format!("{}", (units * 100.0).round() / 100.0),
        _ => human_count(units.round() as u64),
    }
}

pub fn find_index<'t>(table: &'t Value, name: &str) -> Option<&'t Value> {
    ["GlobalSecondaryIndexes", "LocalSecondaryIndexes"]
        .iter()
        .flat_map(|kind| table[*kind].as_array().into_iter().flatten())
        .find(|index| index["IndexName"] == name)
}

/// The attributes of a key schema, partition key first.
pub fn keys(source: &Value) -> Vec<String> {
    let elements = source["KeySchema"].as_array().into_iter().flatten();
    elements.filter_map(|element| element["AttributeName"].as_str().map(str::to_owned)).collect()
}

fn partition_key(source: &Value) -> Option<&str> {
    let elements = source["KeySchema"].as_array()?;
    elements.iter().find(|element| element["KeyType"] == "HASH")?["AttributeName"].as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zenobe_expression::partiql::parse;

    use super::*;

    fn table() -> Value {
        let keys = |partition: &str, sort: &str| {
            json!([
                {"AttributeName": partition, "KeyType": "HASH"},
                {"AttributeName": sort, "KeyType": "RANGE"},
            ])
        };
        json!({
            "TableName": "Music", "ItemCount": 12_345, "TableSizeBytes": 4_096_000, "KeySchema": keys("pk", "sk"),
            "GlobalSecondaryIndexes": [
                {"IndexName": "by-year", "KeySchema": keys("released", "pk"), "ItemCount": 1, "IndexSizeBytes": 100},
            ],
        })
    }

    #[test]
    fn only_scans_are_warned_about() {
        let whole = "this statement scans table Music: 12,345 items, 4.10 MB, about 500 read units to the end";
        for (text, expected) in [
            ("SELECT * FROM Music", Some(whole)),
            ("SELECT * FROM Music WHERE sk = 1", Some(whole)),
            ("SELECT * FROM Music WHERE pk > 'a'", Some(whole)),
            ("SELECT * FROM Music WHERE pk = 'a' OR sk = 1", Some(whole)),
            ("SELECT * FROM Music WHERE NOT pk = 'a'", Some(whole)),
            ("SELECT * FROM Music WHERE pk = 'a'", None),
            ("SELECT * FROM Music WHERE 'a' = pk AND sk > 1 AND other = 2", None),
            ("SELECT * FROM Music WHERE pk IN ['a', 'b']", None),
            ("SELECT * FROM Music WHERE pk = 'a' OR (pk = 'b' AND sk = 1)", None),
            ("SELECT * FROM \"Music\".\"by-year\" WHERE released = 1", None),
            (
                "SELECT * FROM \"Music\".\"by-year\" WHERE pk = 'a'",
                Some(
                    "this statement scans index by-year of table Music: 1 item, 100 B, about 0.5 read units to the end",
                ),
            ),
            ("SELECT * FROM \"Music\".\"missing\"", None),
            ("DELETE FROM Music WHERE sk = 1", None),
            ("INSERT INTO Music VALUE {'pk': 'a'}", None),
        ] {
            let statement = parse(text).unwrap();
            assert_eq!(warning(&statement, &table(), false).as_deref(), expected, "{text}");
        }
        let statement = parse("SELECT * FROM Music").unwrap();
        assert!(warning(&statement, &table(), true).unwrap().contains("about 1,000 read units"));
        let mut small = table();
        small["TableSizeBytes"] = 100.into();
        assert!(warning(&statement, &small, false).unwrap().contains("about 0.5 read units"));
        small["BillingModeSummary"] = json!({"BillingMode": "PAY_PER_REQUEST"});
        assert!(warning(&statement, &small, false).unwrap().contains("about 2 read units"));
    }
}
