use std::time::Duration;

use zenobe_engine::keyspace::KeyHash;
use zenobe_engine::request_facts::{KeyScope, Part};
use zenobe_engine::schema::{KeyAttribute, KeySchema, ScalarType};
use zenobe_engine::throughput::cause::{Access, CauseSet, ThrottleCause};
use zenobe_value::{AttributeValue, key_bytes};

use super::heat::{MINUTES_MAX, PARTITIONS_MAX};
use super::sketch::{COUNTERS, KEPT_SIZE_BYTES_MAX};
use super::*;

fn resource(table: u64) -> Arc<Resource> {
    let namespace = Arc::new(Namespace { account: "1".into(), region: "r".into() });
    let attribute = |name: &str| KeyAttribute { name: name.into(), scalar_type: ScalarType::S };
    Arc::new(Resource {
        table: TableName { namespace, name: format!("t{table}") },
        table_id: TableId(table),
        index: None,
        keys: KeySchema { partition: vec![attribute("p")], sort: vec![attribute("s")] },
    })
}

fn part(resource: &Arc<Resource>, access: Access, partition: &str, sort: &str) -> Part {
    let attribute = KeyAttribute { name: "p".into(), scalar_type: ScalarType::S };
    let mut bytes = Vec::new();
    key_bytes::encode(&AttributeValue::S(partition.into()), &mut bytes).unwrap();
    let hash = KeyHash::of([&attribute], &bytes);
    key_bytes::encode(&AttributeValue::S(sort.into()), &mut bytes).unwrap();
    let key = [&hash.as_bytes()[..], &bytes].concat();
    Part {
        resource: Arc::clone(resource),
        access,
        halves: 2,
        key: key.into(),
        scope: KeyScope::Item,
        partition: 0,
        causes: CauseSet::default(),
    }
}

fn throttled() -> CauseSet {
    [ThrottleCause::Provisioned].into_iter().collect()
}

fn count(keys: &HotKeys, part: Part, minute: u64) {
    let facts = RequestFacts { parts: vec![part], ..RequestFacts::default() };
    keys.count(&facts, Duration::from_micros(10), minute);
}

fn names(resource: &Resource, counters: &[sketch::Counter], sort: bool) -> Vec<String> {
    let name = |counter: &sketch::Counter| {
        let attributes = resource.key_attributes(&counter.key, sort).expect("a key");
        let texts = attributes.into_iter().map(|(_, value)| match value {
            AttributeValue::S(text) => text,
            other => panic!("{other:?}"),
        });
        texts.collect::<Vec<_>>().join("/")
    };
    counters.iter().map(name).collect()
}

#[test]
fn keys_are_ranked_by_what_they_consume() {
    let (keys, table) = (HotKeys::default(), resource(1));
    for _ in 0..2 {
        count(&keys, part(&table, Access::Read, "read", "a"), 9);
    }
    count(&keys, part(&table, Access::Write, "written", "a"), 9);
    count(&keys, part(&table, Access::Write, "written", "b"), 9);
    let refused = Part { halves: 0, causes: throttled(), ..part(&table, Access::Read, "hot", "a") };
    count(&keys, refused, 9);
    // A Query reads a partition key, a Scan none.
    let query = part(&table, Access::Read, "queried", "a");
    count(&keys, Part { scope: KeyScope::Collection, halves: 100, ..query.clone() }, 9);
    count(&keys, Part { scope: KeyScope::Range, halves: 500, ..query }, 9);

    let found = keys.of_table(&table.table);
    let mut found = found[0].lock();
    let partition_keys = found.partition_keys(9);
    let accessed = names(&table, &partition_keys.accessed, false);
    assert_eq!(accessed, ["queried", "written", "read"]);
    assert_eq!(partition_keys.accessed[1].tally.weight, 12);
    assert_eq!(names(&table, &partition_keys.throttled, false), ["hot"]);
    let item_keys = found.item_keys(9);
    assert_eq!(names(&table, &item_keys.accessed, true), ["written/a", "written/b", "read/a"]);
    assert_eq!(found.total.requests, 7);
    assert_eq!(found.total.used.read_halves, 604);
    assert_eq!(found.total.used.throttle_events, 1);
}

#[test]
fn old_keys_fade() {
    let (keys, table) = (HotKeys::default(), resource(1));
    let hottest = |minute| {
        let found = keys.of_table(&table.table);
        let ranked = found[0].lock().partition_keys(minute);
        names(&table, &ranked.accessed, false)
    };
    count(&keys, part(&table, Access::Write, "old", "a"), 1);
    count(&keys, part(&table, Access::Read, "new", "a"), 2);
    assert_eq!(hottest(2), ["old", "new"]);
    assert_eq!(hottest(3), ["new"]);
    assert_eq!(hottest(4), Vec::<String>::new());
    count(&keys, part(&table, Access::Read, "late", "a"), 10);
    assert_eq!(hottest(10), ["late"]);
}

/// Threads add their requests to the sketches late, but nobody sees that.
#[test]
fn requests_of_all_threads_are_counted() {
    let (keys, table) = (HotKeys::default(), resource(1));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (keys, table) = (&keys, &table);
            scope.spawn(move || {
                for number in 0..1_000 + thread {
                    count(keys, part(table, Access::Read, "hot", &number.to_string()), 9);
                }
            });
        }
    });
    let found = keys.of_table(&table.table);
    let mut found = found[0].lock();
    assert_eq!(found.total.requests, 4_006);
    let ranked = found.partition_keys(9).accessed;
    assert_eq!((ranked.len(), ranked[0].tally.events, ranked[0].error), (1, 4_006, 0));
    assert_eq!(found.heat(9).next().unwrap().partitions[0].1.read_halves, 2 * 4_006);
}

/// A batch of writes to a table with a global index uses the two in turn.
#[test]
fn a_request_counts_once_for_each_table_and_index() {
    let (keys, table, index) = (HotKeys::default(), resource(1), resource(2));
    let parts = (0..10).map(|number| {
        let resource = if number % 2 == 0 { &table } else { &index };
        part(resource, Access::Write, &number.to_string(), "a")
    });
    let facts = RequestFacts { parts: parts.collect(), ..RequestFacts::default() };
    keys.count(&facts, Duration::from_micros(10), 9);
    for resource in [table, index] {
        let found = keys.of_table(&resource.table);
        let found = found[0].lock();
        assert_eq!((found.total.requests, found.total.elapsed_us), (1, 10));
        assert_eq!(found.total.used.write_halves, 10);
    }
}

#[test]
fn requests_that_are_added_late_belong_to_their_minute() {
    let (keys, table) = (HotKeys::default(), resource(1));
    // Another thread's requests of three minutes, which it adds only when somebody asks.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (name, minute) in [("forgotten", 7), ("before", 8), ("now", 9)] {
                count(&keys, part(&table, Access::Read, name, "a"), minute);
            }
        });
    });
    let ranked = |minute| {
        let found = keys.of_table(&table.table);
        let ranked = found[0].lock().partition_keys(minute);
        // All weigh the same, so their order means nothing.
        let mut names = names(&table, &ranked.accessed, false);
        names.sort();
        names
    };
    assert_eq!(ranked(9), ["before", "now"]);
    // One that is added after the sketches have moved on.
    count(&keys, part(&table, Access::Read, "late", "a"), 8);
    count(&keys, part(&table, Access::Read, "too late", "a"), 7);
    assert_eq!(ranked(9), ["before", "late", "now"]);
    assert_eq!(ranked(10), ["now"]);
    let found = keys.of_table(&table.table);
    assert_eq!(found[0].lock().total.requests, 5);
    let minutes: Vec<u64> = found[0].lock().heat(10).map(|it| it.minute).collect();
    assert_eq!(minutes, [7, 8, 9]);
}

/// A client that uses a new key, a new partition and a new table with every request can't make the
/// server keep more than this.
#[test]
fn memory_is_bounded_whatever_the_traffic() {
    let keys = HotKeys::default();
    let long = "x".repeat(1_000);
    let tables: Vec<_> = (0..RESOURCES_MAX as u64 + 50).map(resource).collect();
    for number in 0..60_000_usize {
        let table = &tables[number % tables.len()];
        let key = format!("{number}{long}");
        let mut part = part(table, Access::Write, &key, &key);
        if number.is_multiple_of(2) {
            part.causes = throttled();
        }
        part.partition = number as u32;
        count(&keys, part, 100 + number as u64 / 1_000);
    }
    let found = keys.resources(None);
    assert_eq!(found.len(), RESOURCES_MAX);
    assert!(keys.uncounted() > 0);
    for keys in found {
        let mut keys = keys.lock();
        let minute = keys.last_used();
        let minutes: Vec<_> = keys.heat(minute).collect();
        assert!(minutes.len() <= MINUTES_MAX);
        assert!(minutes.iter().all(|minute| minute.partitions.len() <= PARTITIONS_MAX));
        for ranked in [keys.partition_keys(minute), keys.item_keys(minute)] {
            for counters in [ranked.accessed, ranked.throttled] {
                assert!(counters.len() <= 2 * COUNTERS);
                assert!(counters.iter().all(|it| it.key.len() <= KEPT_SIZE_BYTES_MAX));
            }
        }
    }
    // A new table takes the place of one that nobody uses any more.
    let late = resource(10_000);
    count(&keys, part(&late, Access::Read, "a", "b"), 1_000);
    assert_eq!(keys.of_table(&late.table).len(), 1);
    assert_eq!(keys.resources(None).len(), RESOURCES_MAX);
}
