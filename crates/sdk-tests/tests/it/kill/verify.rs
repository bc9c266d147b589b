//! Checks the store against the ledgers, and its parts against each other.

use std::collections::BTreeSet;

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use zenobe_testing::Client;

use super::TABLE;
use super::ledger::{Ledger, State};
use crate::streams::consumer::{Consumer, copy_of};
use crate::tables::{end_stream, number, pages, scan, stream_arn};

/// Every key of every writer matches its ledger.
pub fn items(client: &mut Client, ledgers: &mut [Ledger], round: u64) {
    let stored = scan(client, TABLE, None);
    let mut accounted = stored.iter().filter(|item| item["pk"]["S"] == "counter").count();
    for ledger in ledgers {
        let own = |key: u64| {
            let wanted = ledger.key(key);
            let item =
                stored.iter().find(|item| item["pk"] == wanted["pk"] && item["sk"] == wanted["sk"]);
            item.map(|item| (key, item.clone()))
        };
        let state: State = ledger.keys().filter_map(own).collect();
        accounted += state.len();
        ledger.settle(&state, round);
    }
    assert_eq!(accounted, stored.len(), "round {round}: items that nobody wrote");
}

/// The stream holds the table's whole history: each record continues the one before, and together
/// they yield the table. Ends the stream.
pub fn stream(client: &mut Client) {
    let stream = stream_arn(client, TABLE);
    end_stream(client, TABLE);
    let mut consumer = Consumer::new(&stream);
    let end = consumer.follow(client, &mut StdRng::seed_from_u64(0));
    end.expect("the server lives until the stream ends");
    assert_eq!(
        consumer.copy,
        copy_of(scan(client, TABLE, None)),
        "the records and the items differ"
    );
}

/// Both indexes hold exactly the entries that the items imply, in order.
pub fn indexes(client: &mut Client) {
    let stored = scan(client, TABLE, None);
    let by_group =
        stored.iter().filter(|item| item.get("g").is_some() && item.get("version").is_some());
    check_index(client, "by-group", &by_group.cloned().collect::<Vec<_>>());
    let by_level = stored.iter().filter(|item| item.get("l").is_some());
    let keys_only = |item: &Value| json!({"pk": item["pk"], "sk": item["sk"], "l": item["l"]});
    check_index(client, "by-level", &by_level.map(keys_only).collect::<Vec<_>>());
    check_order(client, &stored);
}

fn check_index(client: &mut Client, index: &str, expected: &[Value]) {
    let found = scan(client, TABLE, Some(index));
    let as_set = |items: &[Value]| items.iter().map(Value::to_string).collect::<BTreeSet<_>>();
    let (found_set, expected_set) = (as_set(&found), as_set(expected));
    let missing: Vec<_> = expected_set.difference(&found_set).collect();
    let stray: Vec<_> = found_set.difference(&expected_set).collect();
    assert!(missing.is_empty() && stray.is_empty(), "{index} lacks {missing:?}, has {stray:?}");
    assert_eq!(found.len(), expected.len(), "{index} holds an entry twice");
}

fn check_order(client: &mut Client, stored: &[Value]) {
    let groups: BTreeSet<_> = stored.iter().filter_map(|item| item["g"]["S"].as_str()).collect();
    for group in groups {
        let request = json!({
            "TableName": TABLE,
            "IndexName": "by-group",
            "KeyConditionExpression": "g = :group",
            "ExpressionAttributeValues": {":group": {"S": group}},
        });
        let found = pages(client, "Query", request);
        let versions: Vec<_> = found.iter().map(|item| number(item, "version")).collect();
        assert!(versions.is_sorted(), "{group} is out of order: {versions:?}");
        let expected = stored.iter().filter(|item| item["g"]["S"] == group).count();
        assert_eq!(versions.len(), expected, "{group} by query");
    }
}

/// DescribeTable's counters change together with the items, so they agree with a scan.
pub fn counts(client: &mut Client) {
    let table = client.expect("DescribeTable", &json!({"TableName": TABLE}))["Table"].take();
    assert_eq!(table["ItemCount"], scan(client, TABLE, None).len(), "items");
    for kind in ["GlobalSecondaryIndexes", "LocalSecondaryIndexes"] {
        for index in table[kind].as_array().expect("the table has both kinds of indexes") {
            let name = index["IndexName"].as_str().expect("an index has a name");
            assert_eq!(index["ItemCount"], scan(client, TABLE, Some(name)).len(), "{name}");
        }
    }
}
