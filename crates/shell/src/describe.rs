//! `\d`: lists tables, or describes one.

use serde_json::Value;
use zenobe_load::{human_bytes, human_count};

use crate::output::table::{self, Column};
use crate::value::escaped;

/// A list of tables, with a summary of each.
pub fn tables(tables: &[Value], width: Option<usize>) -> String {
    let all = |text: fn(&Value) -> String| tables.iter().map(text).collect::<Vec<String>>();
    let columns = [
        Column::left("table", all(|table| text(&table["TableName"]))),
        Column::left("status", all(|table| text(&table["TableStatus"]))),
        Column::left("partition key", all(|table| key(table, table, "HASH"))),
        Column::left("sort key", all(|table| key(table, table, "RANGE"))),
        Column::right("items", all(|table| count(&table["ItemCount"]))),
        Column::right("size", all(|table| size(&table["TableSizeBytes"]))),
        Column::left("indexes", all(|table| indexes(table).count().to_string())),
        Column::left("billing", all(billing)),
    ];
    table::render(&columns, width)
}

/// Only the names, where there are too many tables to describe each.
pub fn names(names: &[String], width: Option<usize>) -> String {
    let names = names.iter().map(|name| escaped(name)).collect();
    table::render(&[Column::left("table", names)], width)
}

/// `table` is the `Table` of DescribeTable, `time_to_live` the description of DescribeTimeToLive,
/// if available.
pub fn table(table: &Value, time_to_live: Option<&Value>, width: Option<usize>) -> String {
    let mut text = format!("table {}\n", text(&table["TableName"]));
    for (name, value) in facts(table, time_to_live) {
        text.push_str(&format!("  {name:<20}{value}\n"));
    }
    let indexes: Vec<&Value> = indexes(table).collect();
    if !indexes.is_empty() {
        text.push_str(&format!("\nindexes\n{}", index_table(table, &indexes, width)));
    }
    text
}

fn facts(table: &Value, time_to_live: Option<&Value>) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("status", text(&table["TableStatus"])),
        ("partition key", key(table, table, "HASH")),
        ("sort key", key(table, table, "RANGE")),
        ("items", count(&table["ItemCount"])),
        ("size", size(&table["TableSizeBytes"])),
        ("billing", billing(table)),
        ("class", text(&table["TableClassSummary"]["TableClass"])),
        ("time to live", time_to_live.map(time_to_live_text).unwrap_or_default()),
        ("stream", stream(table)),
        ("encryption", text(&table["SSEDescription"]["SSEType"])),
        ("deletion protection", on_or_off(&table["DeletionProtectionEnabled"])),
        ("ARN", text(&table["TableArn"])),
    ];
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

fn index_table(table: &Value, indexes: &[&Value], width: Option<usize>) -> String {
    let all = |text: &dyn Fn(&Value) -> String| {
        indexes.iter().map(|index| text(index)).collect::<Vec<String>>()
    };
    let is_local = |index: &Value| {
        let local = table["LocalSecondaryIndexes"].as_array().into_iter().flatten();
        local.into_iter().any(|one| one["IndexName"] == index["IndexName"])
    };
    let kind = |index: &Value| if is_local(index) { "local" } else { "global" }.to_owned();
    let columns = [
        Column::left("index", all(&|index| text(&index["IndexName"]))),
        Column::left("kind", all(&kind)),
        Column::left("partition key", all(&|index| key(table, index, "HASH"))),
        Column::left("sort key", all(&|index| key(table, index, "RANGE"))),
        Column::left("projection", all(&|index| projection(&index["Projection"]))),
        Column::right("items", all(&|index| count(&index["ItemCount"]))),
        Column::right("size", all(&|index| size(&index["IndexSizeBytes"]))),
        Column::left("status", all(&|index| text(&index["IndexStatus"]))),
    ];
    table::render(&columns, width)
}

/// Global indexes first.
fn indexes(table: &Value) -> impl Iterator<Item = &Value> {
    let kinds = ["GlobalSecondaryIndexes", "LocalSecondaryIndexes"];
    kinds.into_iter().flat_map(|kind| table[kind].as_array().into_iter().flatten())
}

fn text(value: &Value) -> String {
    escaped(value.as_str().unwrap_or_default())
}

fn count(value: &Value) -> String {
    value.as_u64().map(human_count).unwrap_or_default()
}

fn size(value: &Value) -> String {
    value.as_u64().map(|bytes| human_bytes(bytes as f64)).unwrap_or_default()
}

fn on_or_off(value: &Value) -> String {
    value.as_bool().map_or("", |on| if on { "on" } else { "off" }).to_owned()
}

/// The attributes of a key, such as `pk (S)`.
fn key(table: &Value, source: &Value, kind: &str) -> String {
    let definitions = || table["AttributeDefinitions"].as_array().into_iter().flatten();
    let elements = source["KeySchema"].as_array().into_iter().flatten();
    let attributes = elements.filter(|element| element["KeyType"] == kind).map(|element| {
        let name = &element["AttributeName"];
        let definition = definitions().find(|definition| &definition["AttributeName"] == name);
        let of_type = definition.map_or_else(String::new, |one| text(&one["AttributeType"]));
        format!("{} ({of_type})", text(name))
    });
    attributes.collect::<Vec<_>>().join(", ")
}

fn projection(projection: &Value) -> String {
    let names = projection["NonKeyAttributes"].as_array().into_iter().flatten().map(text);
    let names = names.collect::<Vec<_>>().join(", ");
    match text(&projection["ProjectionType"]).as_str() {
        "ALL" => "all".to_owned(),
        "KEYS_ONLY" => "keys".to_owned(),
        "INCLUDE" => format!("keys, {names}"),
        other => other.to_owned(),
    }
}

fn billing(table: &Value) -> String {
    if table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST" {
        return "on demand".to_owned();
    }
    let units = |name: &str| count(&table["ProvisionedThroughput"][name]);
    let (read, write) = (units("ReadCapacityUnits"), units("WriteCapacityUnits"));
    format!("provisioned: {read} read, {write} write")
}

fn time_to_live_text(description: &Value) -> String {
    let (status, attribute) =
        (text(&description["TimeToLiveStatus"]), text(&description["AttributeName"]));
    match status.as_str() {
        "DISABLED" => "off".to_owned(),
        "ENABLED" => attribute,
        _ => format!("{attribute} ({})", status.to_ascii_lowercase()),
    }
}

fn stream(table: &Value) -> String {
    let specification = &table["StreamSpecification"];
    match specification["StreamEnabled"].as_bool() {
        Some(true) => {
            format!(
                "{}, {}",
                text(&specification["StreamViewType"]),
                text(&table["LatestStreamArn"])
            )
        }
        _ => "off".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample() -> Value {
        let keys = |partition: &str, sort: &str| {
            json!([
                {"AttributeName": partition, "KeyType": "HASH"},
                {"AttributeName": sort, "KeyType": "RANGE"},
            ])
        };
        json!({
            "TableName": "Music", "TableStatus": "ACTIVE", "ItemCount": 12_345, "TableSizeBytes": 4_096_000,
            "KeySchema": keys("Artist", "Song"),
            "AttributeDefinitions": [
                {"AttributeName": "Artist", "AttributeType": "S"}, {"AttributeName": "Song", "AttributeType": "S"},
                {"AttributeName": "Year", "AttributeType": "N"},
            ],
            "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 1000},
            "DeletionProtectionEnabled": true,
            "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_IMAGE"}, "LatestStreamArn": "arn:s",
            "TableArn": "arn:t",
            "GlobalSecondaryIndexes": [{
                "IndexName": "by-year", "KeySchema": keys("Year", "Song"), "ItemCount": 7, "IndexSizeBytes": 100,
                "IndexStatus": "ACTIVE", "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["Plays"]},
            }],
            "LocalSecondaryIndexes": [{
                "IndexName": "local", "KeySchema": keys("Artist", "Year"), "ItemCount": 8, "IndexSizeBytes": 2000,
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }],
        })
    }

    #[test]
    fn a_table_is_described() {
        let time_to_live = json!({"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"});
        let described = table(&sample(), Some(&time_to_live), None);
        let expected = "\
table Music
  status              ACTIVE
  partition key       Artist (S)
  sort key            Song (S)
  items               12,345
  size                4.10 MB
  billing             provisioned: 5 read, 1,000 write
  time to live        expires
  stream              NEW_IMAGE, arn:s
  deletion protection on
  ARN                 arn:t

indexes
 index   | kind   | partition key | sort key | projection  | items | size    | status
---------+--------+---------------+----------+-------------+-------+---------+--------
 by-year | global | Year (N)      | Song (S) | keys, Plays |     7 |   100 B | ACTIVE
 local   | local  | Artist (S)    | Year (N) | keys        |     8 | 2.00 kB |
";
        assert_eq!(described, expected, "\n{described}");
    }

    #[test]
    fn tables_are_listed() {
        let listed = tables(&[sample()], None);
        let expected = concat!(
            " table | status | partition key | sort key | items  | size    | indexes | billing\n",
            "-------+--------+---------------+----------+--------+---------+---------+",
            "----------------------------------\n",
            " Music | ACTIVE | Artist (S)    | Song (S) | 12,345 | 4.10 MB | 2       | ",
            "provisioned: 5 read, 1,000 write\n",
        );
        assert_eq!(listed, expected, "\n{listed}");
        assert_eq!(names(&["a".into(), "b".into()], None), " table\n-------\n a\n b\n");
    }
}
