use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use zenobe_engine::command::TableName;
use zenobe_engine::request_facts::{
    KeyScope, OmittedParts, PageAccess, PageFacts, Part, RequestFacts,
};
use zenobe_engine::schema::{IndexId, KeySchema, TableId};
use zenobe_engine::throughput::cause::{
    Access, CauseSet, Resource, ThrottleCause, ThrottleEvents, ThrottleReason,
};

use super::*;

fn namespace(number: u64) -> Arc<Namespace> {
    Arc::new(Namespace { account: format!("{number:012}"), region: "us-east-1".into() })
}

fn resource(id: u64, index: Option<&str>) -> Arc<Resource> {
    let table = TableName { namespace: namespace(1), name: format!("t{id}") };
    let index = index.map(|name| (name.to_owned(), IndexId(7)));
    let keys = KeySchema { partition: Vec::new(), sort: Vec::new() };
    Arc::new(Resource { table, table_id: TableId(id), index, keys })
}

fn part(resource: &Arc<Resource>, access: Access, halves: u64, scope: KeyScope) -> Part {
    let resource = Arc::clone(resource);
    let key = bytes::Bytes::new();
    Part { resource, access, halves, key, scope, partition: 0, causes: CauseSet::default() }
}

fn page(table: &str, index: Option<&str>, sort: Option<&'static str>, returned: u64) -> PageFacts {
    PageFacts {
        table: TableName { namespace: namespace(1), name: table.to_owned() },
        index: index.map(str::to_owned),
        access: PageAccess::Query { sort_condition: sort },
        is_backward: false,
        has_filter: true,
        scanned: returned,
        returned,
    }
}

fn observe(traffic: &Traffic, operation: Operation, facts: &RequestFacts) {
    observe_ended(traffic, operation, facts, &namespace(1), None);
}

fn observe_ended(
    traffic: &Traffic,
    operation: Operation,
    facts: &RequestFacts,
    namespace: &Arc<Namespace>,
    error: Option<&'static str>,
) {
    traffic.observe(ObservedRequest {
        request_id: "1",
        operation,
        namespace: Some(namespace),
        error,
        status: if error.is_some() { 400 } else { 200 },
        elapsed: Duration::from_micros(100),
        facts,
        headers: &(),
    });
}

/// Table, index, operation and pattern of each row, with requests, read and written half units, and items.
fn summary(rows: &[TrafficRow]) -> Vec<String> {
    let line = |TrafficRow { key, counts }: &TrafficRow| {
        let (table, index) = (key.table.as_deref(), key.index.as_deref());
        let TrafficCounts { requests, read_halves, write_halves, returned_items, .. } = counts;
        format!(
            "{}/{} {} by {}: {requests} {read_halves} {write_halves} {returned_items}",
            table.unwrap_or("-"),
            index.unwrap_or("-"),
            key.operation.name(),
            key.pattern,
        )
    };
    rows.iter().map(line).collect()
}

#[test]
fn a_request_counts_once_per_table_and_its_units_where_they_belong() {
    let traffic = Traffic::default();
    let (table, index) = (resource(1, None), resource(1, Some("by-owner")));
    let put = RequestFacts {
        parts: vec![
            part(&table, Access::Write, 2, KeyScope::Item),
            part(&index, Access::Write, 4, KeyScope::Item),
        ],
        ..RequestFacts::default()
    };
    for _ in 0..3 {
        observe(&traffic, Operation::PutItem, &put);
    }
    let query = RequestFacts {
        parts: vec![part(&index, Access::Read, 5, KeyScope::Collection)],
        pages: vec![page("t1", Some("by-owner"), Some("begins_with"), 8)],
        ..RequestFacts::default()
    };
    observe(&traffic, Operation::Query, &query);
    let local = RequestFacts {
        parts: vec![part(&table, Access::Read, 3, KeyScope::Collection)],
        pages: vec![page("t1", Some("local"), None, 1)],
        ..RequestFacts::default()
    };
    observe(&traffic, Operation::Query, &local);
    assert_eq!(
        summary(&traffic.take()),
        [
            "t1/- PutItem by write: 3 0 6 0",
            "t1/- Query by partition key, filtered, local index: 1 3 0 1",
            "t1/by-owner PutItem by index write: 0 0 12 0",
            "t1/by-owner Query by partition key and sort begins_with, filtered: 1 5 0 8",
        ]
    );
    assert_eq!(traffic.take(), []);
}

#[test]
fn a_request_that_consumes_units_is_counted_once_per_table_and_index() {
    let traffic = Traffic::default();
    let (table, index) = (resource(1, None), resource(1, Some("by-owner")));
    let write = |of: &Arc<Resource>, halves| part(of, Access::Write, halves, KeyScope::Item);
    let batch = RequestFacts {
        parts: vec![write(&table, 2), write(&index, 2), write(&table, 2), write(&index, 2)],
        ..RequestFacts::default()
    };
    observe(&traffic, Operation::BatchWriteItem, &batch);
    let refused = RequestFacts { parts: vec![write(&table, 0)], ..RequestFacts::default() };
    let error = Some("ProvisionedThroughputExceededException");
    observe_ended(&traffic, Operation::BatchWriteItem, &refused, &namespace(1), error);
    let rows = traffic.take();
    let counts = |row: &TrafficRow| (row.counts.requests, row.counts.consuming_writes);
    assert_eq!(rows.iter().map(counts).collect::<Vec<_>>(), [(2, 1), (0, 1)]);
}

#[test]
fn batches_count_for_each_table_and_statements_find_their_pages() {
    let traffic = Traffic::default();
    let (one, two) = (resource(1, None), resource(2, None));
    let get = |of| part(of, Access::Read, 1, KeyScope::Item);
    let batch = RequestFacts {
        parts: vec![get(&one), get(&two), get(&one), get(&two), get(&one)],
        omitted: vec![OmittedParts {
            resource: two.clone(),
            access: Access::Read,
            halves: 10,
            throttled: ThrottleEvents::default(),
        }],
        ..RequestFacts::default()
    };
    observe(&traffic, Operation::BatchGetItem, &batch);
    // The first statement reads a table that is not metered. The second one was refused.
    let statements = RequestFacts {
        parts: vec![
            part(&one, Access::Read, 0, KeyScope::Collection),
            part(&two, Access::Read, 6, KeyScope::Range),
        ],
        pages: vec![page("t9", None, None, 5), page("t2", None, None, 4)],
        ..RequestFacts::default()
    };
    observe(&traffic, Operation::BatchExecuteStatement, &statements);
    assert_eq!(
        summary(&traffic.take()),
        [
            "t1/- BatchExecuteStatement by partition key: 1 0 0 0",
            "t1/- BatchGetItem by key: 1 3 0 0",
            "t2/- BatchExecuteStatement by scan, filtered: 1 6 0 4",
            "t2/- BatchGetItem by key: 1 12 0 0",
        ]
    );
}

/// CloudWatch has one count of them for the whole account.
#[test]
fn a_faulty_request_to_several_tables_is_one_user_error() {
    let traffic = Traffic::default();
    let [one, two] = [1, 2].map(|id| resource(id, None));
    let parts = [&one, &two].map(|of| part(of, Access::Write, 2, KeyScope::Item)).to_vec();
    let facts = RequestFacts { parts, ..RequestFacts::default() };
    let (namespace, error) = (namespace(1), Some("TransactionCanceledException"));
    observe_ended(&traffic, Operation::TransactWriteItems, &facts, &namespace, error);
    let counts: Vec<_> =
        traffic.take().iter().map(|row| (row.counts.requests, row.counts.user_errors)).collect();
    assert_eq!(counts, [(1, 1), (1, 0)]);
}

#[test]
fn limits_are_counted_by_cause_and_other_tables_met_none() {
    let traffic = Traffic::default();
    let (one, two) = (resource(1, None), resource(2, None));
    let (access, cause) = (Access::Write, ThrottleCause::Provisioned);
    let refused = Part { causes: causes(&[cause]), ..part(&one, access, 0, KeyScope::Item) };
    let facts = RequestFacts {
        parts: vec![refused.clone(), refused, part(&two, access, 2, KeyScope::Item)],
        throttled: vec![ThrottleReason { resource: one, access, cause }],
        ..RequestFacts::default()
    };
    observe(&traffic, Operation::BatchWriteItem, &facts);
    let rows = traffic.take();
    assert_eq!(rows.iter().map(write_events).collect::<Vec<_>>(), [[2, 2, 0], [0, 0, 0]]);
    let throttled: Vec<_> = rows.iter().map(|row| row.counts.throttled_requests).collect();
    assert_eq!(throttled, [1, 0]);
}

/// A part that meets two limits is one event, and the limits of one part are not those of another.
#[test]
fn each_part_counts_once_and_by_its_own_causes() {
    use ThrottleCause::{KeyRange, Provisioned};
    let traffic = Traffic::default();
    let (one, access) = (resource(1, None), Access::Write);
    let refused = |met: &[ThrottleCause]| Part {
        causes: causes(met),
        ..part(&one, access, 0, KeyScope::Item)
    };
    let reason = |cause| ThrottleReason { resource: Arc::clone(&one), access, cause };
    let mut omitted = ThrottleEvents::default();
    (0..10).for_each(|_| omitted.add(causes(&[Provisioned, KeyRange])));
    let facts = RequestFacts {
        parts: vec![refused(&[Provisioned, KeyRange]), refused(&[KeyRange]), refused(&[])],
        omitted: vec![OmittedParts {
            resource: Arc::clone(&one),
            access,
            halves: 0,
            throttled: omitted,
        }],
        throttled: vec![reason(Provisioned), reason(KeyRange)],
        ..RequestFacts::default()
    };
    observe(&traffic, Operation::BatchWriteItem, &facts);
    assert_eq!(traffic.take().iter().map(write_events).collect::<Vec<_>>(), [[12, 11, 12]]);
}

fn causes(met: &[ThrottleCause]) -> CauseSet {
    met.iter().copied().collect()
}

/// All throttled writes, and those by provisioned throughput and by key range.
fn write_events(row: &TrafficRow) -> [u64; 3] {
    let events = &row.counts.throttled_writes;
    [events.total, events.of(ThrottleCause::Provisioned), events.of(ThrottleCause::KeyRange)]
}

#[test]
fn requests_of_no_table_count_while_something_is_metered() {
    let traffic = Traffic::default();
    let (none, error) = (RequestFacts::default(), Some("ValidationException"));
    observe_ended(&traffic, Operation::PutItem, &none, &namespace(3), error);
    assert_eq!(traffic.take(), []);
    traffic.set_metering(true);
    observe_ended(&traffic, Operation::PutItem, &none, &namespace(3), error);
    observe_ended(&traffic, Operation::PutItem, &none, &namespace(3), error);
    let rows = traffic.take();
    assert_eq!(summary(&rows), ["-/- PutItem by other: 2 0 0 0"]);
    assert_eq!((rows[0].counts.user_errors, &rows[0].key.namespace), (2, &namespace(3)));
}

#[test]
fn memory_is_bounded_and_no_unit_is_lost() {
    let traffic = Traffic::default();
    traffic.set_metering(true);
    let seed = rand::random::<u64>();
    println!("ZENOBE_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let sorts = [None, Some("="), Some("BETWEEN"), Some("begins_with"), Some("<")];
    for _ in 0..20_000 {
        let table = resource(random.random_range(0..50_000), None);
        let facts = RequestFacts {
            parts: vec![part(&table, Access::Read, 1, KeyScope::Collection)],
            pages: vec![page(&table.table.name, None, sorts[random.random_range(0..5)], 1)],
            ..RequestFacts::default()
        };
        observe(&traffic, Operation::Query, &facts);
        let caller = namespace(random.random_range(0..1_000));
        observe_ended(&traffic, Operation::GetItem, &RequestFacts::default(), &caller, None);
    }
    let uncounted = traffic.uncounted();
    let rows = traffic.take();
    assert!(rows.len() <= ROWS_MAX + 2 * NAMESPACES_MAX, "{} rows", rows.len());
    let halves: u64 = rows.iter().map(|row| row.counts.read_halves).sum();
    assert_eq!(halves, 20_000);
    let other = rows.iter().find(|row| row.key.table.as_deref() == Some(OTHER)).unwrap();
    assert!(other.counts.read_halves >= 10_000);
    let requests: u64 = rows.iter().map(|row| row.counts.requests).sum();
    assert_eq!(requests + uncounted, 40_000);
}

#[test]
fn threads_count_for_themselves_and_are_added_up() {
    let traffic = Traffic::default();
    let table = resource(1, None);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let facts = RequestFacts {
                    parts: vec![part(&table, Access::Read, 1, KeyScope::Item)],
                    ..RequestFacts::default()
                };
                (0..1_000).for_each(|_| observe(&traffic, Operation::GetItem, &facts));
            });
        }
    });
    assert_eq!(summary(&traffic.take()), ["t1/- GetItem by key: 4000 4000 0 0"]);
}
