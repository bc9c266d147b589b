//! Batches and transactions.

use zenobe_engine::ThroughputMode::Enforce;
use zenobe_engine::command::*;
use zenobe_engine::error::{CancellationReason, Error};

use super::*;

fn batch(count: usize) -> BatchWrite {
    let put = |number| BatchWriteRequest::Put(item(&format!("{number}"), &[]));
    let requests = (0..count).map(put).collect();
    BatchWrite { tables: vec![BatchWriteTable { table: name("t"), requests }] }
}

#[tokio::test]
async fn a_batch_writes_what_it_can() {
    let harness = harness(Enforce).await;
    harness.create(create_provisioned(5, 5)).await;
    let outcome = harness.engine.batch_write(batch(8)).await.unwrap();
    assert_eq!(outcome.tables[0].unprocessed.len(), 3);
    assert_eq!(outcome.tables[0].consumed.table_halves, 10);
    assert_eq!(harness.describe().await.statistics.item_count, 5);
    // Nothing at all is an error.
    match harness.engine.batch_write(batch(8)).await {
        Err(Error::Throttled(throttled)) => {
            assert_eq!(names(&throttled), ["TableWriteProvisionedThroughputExceeded"]);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_batch_reads_what_it_can() {
    let harness = harness(Enforce).await;
    harness.create(create_provisioned(4, 50)).await;
    for number in 0..20 {
        harness.put_id(&format!("{number}")).await.unwrap();
    }
    let keys =
        (0..20).map(|number| Attributes::from([("id".to_owned(), text(&format!("{number}")))]));
    let table = BatchGetTable {
        table: name("t"),
        keys: keys.collect(),
        projection: None,
        consistent: false,
    };
    let command = BatchGet { tables: vec![table] };
    let outcome = harness.engine.batch_get(&command).await.unwrap();
    assert_eq!(outcome.tables[0].items.len(), 8, "of half a unit each");
    assert_eq!(outcome.tables[0].unprocessed, (8..20).collect::<Vec<_>>());
    assert!(matches!(harness.engine.batch_get(&command).await, Err(Error::Throttled(_))));
}

#[tokio::test]
async fn a_transaction_is_cancelled_with_the_reasons_of_its_actions() {
    let harness = harness(Enforce).await;
    harness.create(create_provisioned(10, 10)).await;
    harness.create(CreateTable { table: name("small"), ..create_provisioned(1, 1) }).await;
    let put = |table: &str, id: &str| {
        TransactAction::Put(PutItem { table: name(table), item: item(id, &[]), condition: None })
    };
    let actions = || vec![put("t", "a"), put("small", "b"), put("small", "c")];
    let write = async || {
        harness.engine.transact_write(TransactWrite { token: None, actions: actions() }).await
    };
    // The first action on the small table takes more than it has left.
    let Err(Error::TransactionCancelled(reasons)) = write().await else { panic!() };
    let throttled: Vec<bool> =
        reasons.iter().map(|reason| matches!(reason, CancellationReason::Throttled(_))).collect();
    assert_eq!(throttled, [false, false, true]);
    assert_eq!(harness.consumed(None).1, 0.0);
    // What the others had taken was given back, so the table has all of its capacity.
    let (passed, _) = passing(100, |_| harness.put_id("a")).await;
    assert_eq!(passed, 10);
}
