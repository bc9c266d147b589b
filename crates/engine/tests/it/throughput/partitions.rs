//! How partitions come about, and that they last.

use zenobe_engine::ThroughputMode::{Enforce, Observe};
use zenobe_engine::lease::NodeStatus;
use zenobe_engine::schema::{KeySchema, ScalarType, StreamViewType};
use zenobe_store::Store;

use super::*;

const ROUND_MS: u64 = 10_000;

impl Harness {
    /// Lets background work look at the traffic.
    async fn next_round(&self) {
        self.clock.advance_ms(ROUND_MS);
        self.engine.run_pending_work().await.unwrap();
    }
}

/// What was once provisioned with 10,000 writes stays divided.
#[tokio::test]
async fn partitions_never_merge() {
    let harness = harness(Enforce).await;
    harness.create(create_provisioned(1, 10_000)).await;
    let count = harness.partitions().await.partitions.len();
    assert_eq!(count, 11, "10 for the writes, and the read");
    harness.engine.run_pending_work().await.unwrap();
    harness.update(|request| request.throughput = units(1, 1_000)).await.unwrap();
    assert_eq!(harness.partitions().await.partitions.len(), count);
    // One of them may take all that is left.
    harness.clock.advance_ms(1_000);
    assert_eq!(passing(1_000, |_| harness.put_id("one")).await.0, 1_000);
    harness.engine.run_pending_work().await.unwrap();
    let restarted = harness.another().await;
    assert_eq!(restarted.partitions().await.partitions.len(), count);
}

#[tokio::test]
async fn on_demand_tables_have_as_many_partitions_as_they_are_warm() {
    let harness = harness(Observe).await;
    harness.create(create("t")).await;
    assert_eq!(harness.partitions().await.partitions.len(), 4);
    harness.update(|request| request.throughput.warm_write_units = Some(20_000)).await.unwrap();
    assert_eq!(harness.partitions().await.partitions.len(), 20);
    assert_eq!(harness.partitions().await.write.units_per_second, 20_000);
}

/// A key that is hot for minutes gets a partition of its own, here and after a restart.
#[tokio::test]
async fn a_hot_key_is_isolated() {
    let harness = harness(Observe).await;
    harness.create(create("t")).await;
    let mut heavy = item("hot", &[]);
    heavy.insert("data".into(), long(400_000));
    let hot = async || {
        // Writes of 391 units, 547 units per second, all at the same moment.
        for _ in 0..14 {
            harness.put(heavy.clone()).await.unwrap();
        }
        harness.clock.advance_ms(ROUND_MS);
        harness.engine.run_pending_work().await.unwrap();
    };
    let before = harness.partitions().await.partitions;
    for _ in 0..31 {
        hot().await;
    }
    let after = harness.partitions().await.partitions;
    assert_eq!(after.len(), before.len() + 2, "before it, itself and after it");
    // An item is never split.
    for _ in 0..32 {
        hot().await;
    }
    assert_eq!(harness.partitions().await.partitions.len(), after.len());
    let firsts = |partitions: &[zenobe_engine::throughput::report::PartitionStatus]| {
        partitions.iter().map(|it| (it.id, it.first_hash)).collect::<Vec<_>>()
    };
    let restarted = harness.another().await;
    assert_eq!(firsts(&restarted.partitions().await.partitions), firsts(&after));
    // A Scan is charged for each of them.
    let page = PageRequest::default();
    let scan = Scan { table: name("t"), index: None, segment: None, page };
    let outcome = restarted.engine.scan(&scan).await.unwrap();
    assert_eq!(outcome.consumed.table_halves, 98 + 5);
}

/// What counts is what a key consumes, not how often it is used.
#[tokio::test]
async fn a_key_of_few_heavy_writes_is_isolated() {
    let harness = harness(Observe).await;
    harness.create(create_provisioned(1, 1)).await;
    let mut heavy = item("hot", &[]);
    heavy.insert("data".into(), long(400_000));
    for _ in 0..32 {
        // 22 writes of 391 units each among 200 of one unit.
        for number in 0..200 {
            harness.put_id(&format!("{number}")).await.unwrap();
            if number % 9 == 0 {
                harness.put(heavy.clone()).await.unwrap();
            }
        }
        harness.next_round().await;
    }
    let partitions = harness.partitions().await.partitions;
    assert_eq!(partitions.len(), 3, "before it, itself and after it");
    let hot = partitions[1].first_hash;
    assert_eq!(partitions[2].first_hash, hot, "the rest of what has the same hash");
}

/// A table with partition key `id` and sort key `at`.
fn create_sorted() -> CreateTable {
    let mut request = create("t");
    request.keys.sort.push(key("at", ScalarType::N));
    request.attribute_types.insert("at".into(), ScalarType::N);
    request
}

impl Harness {
    /// Makes the collection `hot` hot: each round writes 15 large items with these sort keys, and
    /// deletes them again.
    async fn heat_collection(&self, rounds: u64, sort_key: impl Fn(u64) -> u64) {
        for write in 0..rounds * 15 {
            let at = ("at".to_owned(), number(sort_key(write)));
            let key: Attributes = item("hot", &[]).into_iter().chain([at]).collect();
            let mut heavy = key.clone();
            heavy.insert("data".into(), long(350_000));
            self.put(heavy).await.unwrap();
            let delete = DeleteItem { table: name("t"), key, condition: None };
            self.engine.delete_item(delete).await.unwrap();
            if write % 15 == 14 {
                self.next_round().await;
            }
        }
    }

    /// How many partitions begin inside an item collection.
    async fn divided_collections(&self) -> usize {
        let partitions = self.partitions().await.partitions;
        partitions.iter().filter(|partition| partition.begins_inside_collection).count()
    }
}

#[tokio::test]
async fn a_hot_collection_is_split_by_its_sort_key() {
    let harness = harness(Observe).await;
    harness.create(create_sorted()).await;
    harness.heat_collection(32, |write| write * 37 % 100).await;
    assert_eq!(harness.divided_collections().await, 1);
    assert_eq!(harness.partitions().await.partitions.len(), 5);
}

/// Splitting it does not help: its traffic is always at its end.
#[tokio::test]
async fn a_collection_with_growing_sort_keys_is_not_split() {
    let harness = harness(Observe).await;
    harness.create(create_sorted()).await;
    harness.heat_collection(64, |write| write).await;
    assert_eq!(harness.divided_collections().await, 0);
    // It has a partition of its own.
    assert_eq!(harness.partitions().await.partitions.len(), 6);
}

/// Local indexes are in the partition of their collection.
#[tokio::test]
async fn a_collection_with_local_indexes_is_not_split() {
    let harness = harness(Observe).await;
    let mut request = create_sorted();
    let keys = KeySchema {
        partition: vec![key("id", ScalarType::S)],
        sort: vec![key("rank", ScalarType::N)],
    };
    request.attribute_types.insert("rank".into(), ScalarType::N);
    let local = index("by-rank", "id", ThroughputSettings::default());
    request.local_indexes = vec![CreateIndex { keys, ..local }];
    harness.create(request).await;
    harness.heat_collection(32, |write| write * 37 % 100).await;
    assert_eq!(harness.divided_collections().await, 0);
    assert_eq!(harness.partitions().await.partitions.len(), 6, "isolated as a whole");
}

/// As on DynamoDB: of provisioned tables, only those without a stream isolate hot items.
#[tokio::test]
async fn a_hot_key_of_a_provisioned_table_with_a_stream_is_not_isolated() {
    let harness = harness(Observe).await;
    harness.create(create_provisioned(1, 1)).await;
    let stream = async |change| {
        harness.update(|request| request.stream = Some(change)).await.unwrap();
    };
    stream(StreamChange::Enable(StreamViewType::KeysOnly)).await;
    let mut heavy = item("hot", &[]);
    heavy.insert("data".into(), long(400_000));
    let hot = async || {
        for _ in 0..32 {
            for _ in 0..21 {
                harness.put(heavy.clone()).await.unwrap();
            }
            harness.next_round().await;
        }
        harness.partitions().await.partitions.len()
    };
    assert_eq!(hot().await, 1);
    stream(StreamChange::Disable).await;
    assert_eq!(hot().await, 3);
}

#[tokio::test]
async fn deleting_a_table_deletes_its_map() {
    let harness = harness(Enforce).await;
    harness.create(create_provisioned(1, 1_000)).await;
    harness.put_id("a").await.unwrap();
    harness.update(|request| request.throughput = units(1, 3_000)).await.unwrap();
    harness.clock.advance_ms(ROUND_MS);
    harness.put_id("a").await.unwrap();
    harness.engine.run_pending_work().await.unwrap();
    let maps = async || {
        let keys = harness.keys().await;
        keys.iter().filter(|key| key[0] == b'p' && key.len() == 13).count()
    };
    assert_eq!(maps().await, 1);
    harness.engine.delete_table(&name("t")).await.unwrap();
    assert_eq!(maps().await, 0);
}

/// Two nodes have one map, and half of the capacity each.
#[tokio::test(start_paused = true)]
async fn nodes_share_map_and_capacity() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::shared());
    let options = || EngineOptions { throughput: Enforce, ..EngineOptions::default() };
    let one = Harness::with_options(Arc::clone(&store), options()).await;
    let seeded = EngineOptions { clock: one.clock.clone(), random_seed: Some(2), ..options() };
    let engine = zenobe_engine::Engine::open(store.clone(), seeded).await.unwrap();
    let other = Harness { store, clock: one.clock.clone(), engine };
    one.create(create_provisioned(1, 100)).await;
    let work = async || {
        for node in [&one, &other, &one, &other] {
            node.engine.run_pending_work().await.unwrap();
        }
    };
    work().await;
    let alive = one.engine.nodes().await.unwrap();
    assert_eq!(alive.iter().filter(|node: &&NodeStatus| node.is_alive).count(), 2);
    assert_eq!(passing(200, |_| one.put_id("a")).await.0, 50);
    assert_eq!(passing(200, |_| other.put_id("a")).await.0, 50);
    one.update(|request| request.throughput = units(1, 4_000)).await.unwrap();
    one.clock.advance_ms(ROUND_MS);
    one.put_id("a").await.unwrap();
    other.put_id("a").await.unwrap();
    work().await;
    let ids =
        |report: PartitionReport| report.partitions.iter().map(|it| it.id).collect::<Vec<_>>();
    let (of_one, of_other) = (ids(one.partitions().await), ids(other.partitions().await));
    assert_eq!(of_one.len(), 5);
    assert_eq!(of_one, of_other);
}
