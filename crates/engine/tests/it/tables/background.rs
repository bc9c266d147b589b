//! Background work whose store hangs or panics at one point.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};
use zenobe_engine::Limits;
use zenobe_engine::command::UpdateTimeToLive;
use zenobe_engine::schema::IndexStatus;
use zenobe_store::layer::Layer;
use zenobe_store::memory::MemoryStore;
use zenobe_store::{Direction, Key, KeyRange, Result, Store, Value, Visitor};

use super::harness::*;

const ITEM_KIND: u8 = b'T';

#[tokio::test(start_paused = true)]
async fn nothing_waits_for_an_index_that_is_being_filled() {
    let harness = with_fault(Fault::Hang).await;
    let update =
        UpdateTimeToLive { table: name("t"), attribute: "expires".to_owned(), enabled: true };
    harness.engine.update_time_to_live(update).await.unwrap();
    harness.engine.run_pending_work().await.unwrap();
    let mut expiring = item("expiring", &[]);
    expiring.insert("expires".to_owned(), number(START_MS / 1_000));
    harness.put(expiring).await.unwrap();
    harness.update(|request| add_index(request, "by-owner", "owner")).await.unwrap();
    harness.faults.store(u64::MAX, Ordering::SeqCst);
    let worker = tokio::spawn(Arc::clone(&harness.engine).run_background());
    harness.clock.set_ms(START_MS + 10_000);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let filling = IndexStatus::Creating { backfilling: true };
    assert_eq!(harness.index_status("by-owner").await, Some(filling));
    assert_eq!(harness.engine.expired_items(), 1);
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn work_that_panicked_is_retried() {
    let harness = with_fault(Fault::Panic).await;
    harness.put(item("a", &[("owner", "o")])).await.unwrap();
    harness.update(|request| add_index(request, "by-owner", "owner")).await.unwrap();
    harness.faults.store(2, Ordering::SeqCst);
    let worker = tokio::spawn(Arc::clone(&harness.engine).run_background());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(harness.index_status("by-owner").await, Some(IndexStatus::Active));
    assert_eq!(harness.engine.background_panics(), 2);
    assert!(!worker.is_finished());
    worker.abort();
}

struct Faulty {
    harness: Harness,
    /// How many more scans of items will fail.
    faults: Arc<AtomicU64>,
}

impl std::ops::Deref for Faulty {
    type Target = Harness;

    fn deref(&self) -> &Harness {
        &self.harness
    }
}

async fn with_fault(fault: Fault) -> Faulty {
    let faults = Arc::new(AtomicU64::new(0));
    let below = Arc::new(MemoryStore::new());
    let store = FaultyStore { below, fault, faults: Arc::clone(&faults) };
    let harness = Harness::with(Arc::new(store), Limits::default()).await;
    harness.create(create("t")).await;
    Faulty { harness, faults }
}

#[derive(Clone, Copy)]
enum Fault {
    Hang,
    Panic,
}

struct FaultyStore {
    below: Arc<dyn Store>,
    fault: Fault,
    faults: Arc<AtomicU64>,
}

impl Layer for FaultyStore {
    fn below(&self) -> &Arc<dyn Store> {
        &self.below
    }

    fn scan_then_get<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        entries_max: Option<usize>,
        visit: &'a mut Visitor<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        let take_one = |left: u64| left.checked_sub(1);
        let (set, fetch) = (Ordering::SeqCst, Ordering::SeqCst);
        let fails = range.start.first() == Some(&ITEM_KIND)
            && self.faults.fetch_update(set, fetch, take_one).is_ok();
        match self.fault {
            _ if !fails => self.below.scan_then_get(range, direction, entries_max, visit, keys),
            Fault::Hang => pending().boxed(),
            Fault::Panic => panic!("a scan of items, as the test wants it"),
        }
    }
}
