//! Pages, and the partitions that they touch.

use zenobe_engine::ThroughputMode::{Enforce, Observe};

use super::*;

impl Harness {
    async fn scan_page(&self, index: Option<&str>, limit: Option<u32>) -> Result<PageOutcome> {
        let page = PageRequest { limit, consistent: index.is_none(), ..PageRequest::default() };
        let index = index.map(str::to_owned);
        self.engine.scan(&Scan { table: name("t"), index, segment: None, page }).await
    }

    /// The units read of each partition.
    async fn reads(&self, resource: usize) -> Vec<f64> {
        let reports = self.engine.partitions(&name("t")).await.unwrap();
        reports[resource].partitions.iter().map(|partition| partition.read_units).collect()
    }
}

/// Items of four units to write and one to read.
async fn with_items(throughput: ThroughputMode) -> Harness {
    let harness = harness(throughput).await;
    let mut request = create_provisioned(3_000, 5_000);
    request.global_indexes = vec![index("by-owner", "owner", units(3_000, 5_000))];
    request.attribute_types.insert("owner".into(), zenobe_engine::schema::ScalarType::S);
    harness.create(request).await;
    for number in 0..60 {
        let mut item = item(&format!("{number}"), &[("owner", &format!("o{number}"))]);
        item.insert("data".into(), long(4_000));
        harness.put(item).await.unwrap();
    }
    harness
}

#[tokio::test]
async fn a_page_is_charged_to_the_partitions_that_it_touched() {
    let harness = with_items(Observe).await;
    for (resource, index) in [(0, None), (1, Some("by-owner"))] {
        let written: Vec<f64> = harness.engine.partitions(&name("t")).await.unwrap()[resource]
            .partitions
            .iter()
            .map(|partition| partition.write_units)
            .collect();
        assert_eq!((written.len(), written.iter().sum::<f64>()), (6, 240.0));
        let consumed =
            harness.scan_page(index, None).await.unwrap().consumed.total_halves() as f64 / 2.0;
        let reads = harness.reads(resource).await;
        assert_eq!(reads.iter().sum::<f64>(), consumed);
        for (read, written) in reads.iter().zip(&written) {
            let expected = consumed * written / 240.0;
            assert!((read - expected).abs() <= 1.0, "{read} for {expected} in {reads:?}");
        }
    }
}

/// A page that is full before it reaches a partition doesn't touch it.
#[tokio::test]
async fn a_page_that_ends_early_touches_no_more() {
    let harness = with_items(Observe).await;
    let consumed = harness.scan_page(None, Some(1)).await.unwrap().consumed.table_halves;
    let reads = harness.reads(0).await;
    assert_eq!(reads.iter().filter(|units| **units > 0.0).count(), 1);
    assert_eq!(reads.iter().sum::<f64>(), consumed as f64 / 2.0);
}

/// What a Scan reads of a partition is gone for others who read there, wherever the page began.
#[tokio::test]
async fn a_page_uses_the_capacity_of_every_partition_it_touched() {
    let harness = with_items(Enforce).await;
    harness.clock.advance_ms(1_000);
    let left = async || harness.partitions().await.read.units_left;
    let before = left().await;
    let consumed = harness.scan_page(None, None).await.unwrap().consumed.table_halves;
    assert_eq!(before - left().await, consumed as i64 / 2);
    // Each partition has 3,000 reads per second; the table has more, saved in a while.
    harness.clock.advance_ms(300_000);
    let scans = passing(1_000, |_| harness.scan_page(None, None)).await;
    assert_eq!(scans.1, ["TableReadKeyRangeThroughputExceeded"]);
    // The page begins in the first partition, and the last ones are in debt as well.
    let (mut refused, mut passed) = (0, 0);
    for number in 0..60 {
        match harness.get_id(&format!("{number}"), true).await {
            Ok(_) => passed += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 60 / 6, "{refused} refused, {passed} passed");
}
