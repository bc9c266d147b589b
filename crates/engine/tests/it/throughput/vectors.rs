//! How many units requests consume, by the sizes of their items. Partitions, bursts, hot keys and
//! dilution have their own tests beside this one.

use std::collections::BTreeMap;

use zenobe_engine::ThroughputMode::{Enforce, Observe};
use zenobe_engine::schema::ScalarType;
use zenobe_expression::{Binder, ExpressionKind, KeyCondition, KeyOperator};

use super::*;

const KIB: usize = 1_024;

/// An item of this many bytes, with names.
fn sized(id: char, size_bytes: usize) -> Attributes {
    let mut sized = item(&id.to_string(), &[]);
    let names = "id".len() + 1 + "data".len();
    sized.insert("data".into(), long(size_bytes - names));
    sized
}

#[tokio::test]
async fn reads_cost_a_unit_per_4_kib_and_writes_one_per_kib() {
    let harness = harness(Observe).await;
    harness.create(create("t")).await;
    let sizes = [
        (8, 1, 1),
        (KIB, 1, 1),
        (KIB + 1, 1, 2),
        (4 * KIB, 1, 4),
        (4 * KIB + 1, 2, 5),
        (400 * KIB, 100, 400),
    ];
    for (id, (size_bytes, read, write)) in ('a'..).zip(sizes) {
        let before = harness.consumed(None);
        harness.put(sized(id, size_bytes)).await.unwrap();
        harness.get_id(&id.to_string(), true).await.unwrap();
        let after = harness.consumed(None);
        let consumed = (after.0 - before.0, after.1 - before.1);
        assert_eq!(consumed, (f64::from(read), f64::from(write)), "{size_bytes} bytes");
        harness.get_id(&id.to_string(), false).await.unwrap();
        let eventual = harness.consumed(None).0 - after.0;
        assert_eq!(eventual, f64::from(read) / 2.0, "half of it, of {size_bytes} bytes");
    }
}

#[tokio::test]
async fn a_full_page_costs_256_units_whatever_the_filter_keeps() {
    let harness = harness(Observe).await;
    // One partition: those of on-demand tables are rounded up one by one.
    let mut request = create_provisioned(10, 10);
    request.keys.sort = vec![key("number", ScalarType::S)];
    request.attribute_types.insert("number".into(), ScalarType::S);
    harness.create(request).await;
    for count in 100..400 {
        let mut item = item("a", &[("number", &count.to_string())]);
        let other_size_bytes = "id".len() + 1 + "number".len() + 3 + "data".len();
        item.insert("data".into(), long(4 * KIB - other_size_bytes));
        harness.put(item).await.unwrap();
    }
    let mut binder = Binder::new(None, None);
    let nothing = binder.condition(ExpressionKind::Filter, "attribute_exists(absent)").unwrap();
    for (filter, count) in [(None, 256), (Some(nothing), 0)] {
        for (consistent, halves) in [(true, 512), (false, 256)] {
            let page = PageRequest { consistent, filter: filter.clone(), ..PageRequest::default() };
            let scan = Scan { table: name("t"), index: None, segment: None, page: page.clone() };
            let operator = KeyOperator::Equal(text("a"));
            let of_a = KeyCondition { attribute: "id".into(), operator };
            let key_conditions = vec![of_a];
            let table = name("t");
            let query = Query { table, index: None, key_conditions, forward: true, page };
            for outcome in [harness.engine.scan(&scan).await, harness.engine.query(&query).await] {
                let outcome = outcome.unwrap();
                assert_eq!((outcome.count, outcome.scanned_count), (count, 256));
                assert_eq!(outcome.consumed.table_halves, halves);
            }
        }
    }
    assert_eq!(harness.consumed(None).0, 2.0 * 2.0 * (256.0 + 128.0));
}

impl Harness {
    /// Writes items until there is one in each partition of table `t`. Returns the id of one in each.
    async fn id_in_each_partition(&self) -> BTreeMap<usize, String> {
        let count = self.partitions().await.partitions.len();
        let mut ids = BTreeMap::new();
        for number in 0.. {
            if ids.len() == count {
                break;
            }
            let id = number.to_string();
            let before = self.partitions().await.partitions;
            self.put_id(&id).await.unwrap();
            let after = self.partitions().await.partitions;
            let mut both = before.iter().zip(&after);
            let position = both.position(|(one, other)| one.write_units < other.write_units);
            ids.insert(position.expect("it was written somewhere"), id);
        }
        ids
    }
}

/// The classic even split, and its dilution: a table that once needed many partitions keeps them.
/// Keys that are spread evenly get what each partition would have had.
#[tokio::test]
async fn partitions_share_1000_writes_evenly() {
    for (provisioned, partitions, each, left) in [(2_999, 3, 333, 1), (9_999, 10, 100, 0)] {
        let harness = harness(Enforce).await;
        harness.create(create_provisioned(1, provisioned)).await;
        harness.update(|request| request.throughput = units(1, 1_000)).await.unwrap();
        for (position, id) in &harness.id_in_each_partition().await {
            let written = harness.partitions().await.partitions[*position].write_units as usize;
            let (passed, reasons) = passing(each - written, |_| harness.put_id(id)).await;
            assert_eq!((passed, reasons), (each - written, vec![]));
        }
        let report = harness.partitions().await;
        let written = report.partitions.iter().map(|partition| partition.write_units);
        assert_eq!(written.collect::<Vec<_>>(), vec![each as f64; partitions]);
        let (passed, reasons) = passing(left + 1, |_| harness.put_id("more")).await;
        assert_eq!((passed, reasons), (left, vec!["TableWriteProvisionedThroughputExceeded"]));
    }
}

#[tokio::test]
async fn two_partitions_share_1000_reads_and_1000_writes_evenly() {
    let harness = harness(Enforce).await;
    harness.create(create_provisioned(1_000, 1_000)).await;
    for (position, id) in &harness.id_in_each_partition().await {
        let written = harness.partitions().await.partitions[*position].write_units as usize;
        let writes = passing(500 - written, |_| harness.put_id(id)).await;
        assert_eq!(writes, (500 - written, vec![]));
        assert_eq!(passing(500, |_| harness.get_id(id, true)).await, (500, vec![]));
    }
    let report = harness.partitions().await;
    let consumed = report.partitions.iter().map(|it| (it.read_units, it.write_units));
    assert_eq!(consumed.collect::<Vec<_>>(), [(500.0, 500.0); 2]);
    let one_more_read = passing(1, |_| harness.get_id("more", true)).await;
    assert_eq!(one_more_read, (0, vec!["TableReadProvisionedThroughputExceeded"]));
    let one_more_write = passing(1, |_| harness.put_id("more")).await;
    assert_eq!(one_more_write, (0, vec!["TableWriteProvisionedThroughputExceeded"]));
}

/// One key has one partition, however much its table may use.
#[tokio::test]
async fn one_key_serves_what_a_partition_serves_and_not_one_more() {
    let harness = harness(Enforce).await;
    harness.create(create_provisioned(12_000, 4_000)).await;
    harness.put(sized('a', 4 * KIB)).await.unwrap();
    for (consistent, served) in [(true, 3_000), (false, 6_000)] {
        let reads = passing(served + 1, |_| harness.get_id("a", consistent)).await;
        assert_eq!(reads, (served, vec!["TableReadKeyRangeThroughputExceeded"]));
        harness.clock.advance_ms(1_000);
    }
    let writes = passing(1_001, |_| harness.put(sized('b', KIB))).await;
    assert_eq!(writes, (1_000, vec!["TableWriteKeyRangeThroughputExceeded"]));
}
