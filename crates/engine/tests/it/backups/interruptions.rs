//! Processes that die while they copy or restore a backup.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;
use zenobe_store::failing::{FailingStore, WriteFailure};
use zenobe_store::layer::Layer;
use zenobe_store::{CommitOutcome, Decide, Key, Result as StoreResult, Value, WriteSet};

use super::*;

/// More than the job can copy, or the restore write, in one step.
const ITEMS: u64 = 120;
const PAD_BYTES: usize = 40_000;

async fn fill(world: &World, value: u64) {
    for number in 0..ITEMS {
        let pad = AttributeValue::B(vec![value as u8; PAD_BYTES]);
        let item = Attributes::from([
            ("pk".to_owned(), AttributeValue::S(format!("{number:03}"))),
            ("v".to_owned(), AttributeValue::N(zenobe_value::Number::from(value + number))),
            ("pad".to_owned(), pad),
        ]);
        let put = PutItem { table: world.script.table("t"), item, condition: None };
        world.engine().put_item(put).await.unwrap();
    }
}

/// Changes, adds and deletes items all over the table.
async fn change(world: &mut World, round: u32) {
    for number in (0..ITEMS).step_by(3) {
        world.put(&format!("{number:03}"), round).await;
    }
    for number in (1..ITEMS).step_by(9) {
        world.script.run(&[&format!(r#"delete t {{"pk": "{number:03}"}}"#)]).await;
        world.put(&format!("{number:03}-{round}"), round).await;
    }
}

/// Works until the process dies. Returns whether it had nothing left to do before.
async fn work_and_die(world: &World, writes: usize) -> bool {
    let below = world.store.clone();
    let store = Arc::new(FailingStore::new(below));
    store.set(WriteFailure::RefusedAfter { writes, error: zenobe_store::Error::Closed });
    let script = open(store.clone(), &world.clock).await;
    let outcome = script.engine().run_pending_work().await;
    let is_done = outcome.is_ok();
    assert!(
        matches!(outcome, Ok(()) | Err(Error::Store(zenobe_store::Error::Closed))),
        "{outcome:?}"
    );
    is_done
}

/// The world as another process finds it.
async fn reopen(world: &mut World) {
    world.script = open(world.store.clone(), &world.clock).await;
}

/// Dies after every number of writes. In the meantime, the table changes, or is deleted.
fn dies_everywhere(meanwhile: &impl AsyncFn(&mut World)) {
    on_each_store(async |store| {
        for writes in 0.. {
            let mut world = World::with_table(store()).await;
            fill(&world, 7).await;
            let before = world.state("t").await;
            let id = world.back_up().await;
            change(&mut world, 1).await;
            // It begins to read the table, and goes on with the copy.
            world.begin_restore(&id, "restored").await.unwrap();
            let is_done = work_and_die(&world, writes).await;
            reopen(&mut world).await;
            meanwhile(&mut world).await;
            world.work().await;
            assert_eq!(world.state("restored").await, before, "{writes} writes");
            world.script.run(&["drop restored"]).await;
            assert_eq!(world.restored(&id).await, before, "{writes} writes");
            world.script.check_consistency().await;
            assert_eq!((world.count(b'U').await, world.count(b'J').await), (0, 0));
            if is_done {
                assert!(writes > 6, "several steps of each");
                return;
            }
        }
    });
}

#[test]
fn a_copy_and_a_restore_go_on_in_another_process() {
    dies_everywhere(&async |world| change(world, 2).await);
}

#[test]
fn a_copy_and_a_restore_go_on_without_the_table() {
    dies_everywhere(&async |world| {
        world.script.run(&["drop t"]).await;
        world.work().await;
        world.script.run(&["create t pk:S"]).await;
        world.put("another", 1).await;
    });
}

/// Wherever a copy is, deleting the backup leaves nothing of it.
#[test]
fn a_backup_can_be_deleted_while_it_is_copied() {
    on_each_store(async |store| {
        for writes in 0.. {
            let mut world = World::with_table(store()).await;
            fill(&world, 7).await;
            let id = world.back_up().await;
            change(&mut world, 1).await;
            let is_done = work_and_die(&world, writes).await;
            reopen(&mut world).await;
            world.engine().delete_backup(&world.script.table("t"), &id).await.unwrap();
            world.work().await;
            for kind in [b'F', b'J', b'P', b'U', b'W'] {
                let left = world.count(kind).await;
                assert_eq!(left, 0, "{} after {writes} writes", char::from(kind));
            }
            world.script.check_consistency().await;
            if is_done {
                assert!(writes > 3, "several steps");
                return;
            }
        }
    });
}

/// Loses the answer to each write of a job that was not lost before, and then shows the job's row as it was, once. So does a store that
/// recovers from a failure.
struct ForgetfulStore {
    below: Arc<dyn Store>,
    writes: AtomicUsize,
    old_row: Mutex<Option<(Key, Option<Value>)>>,
}

impl Layer for ForgetfulStore {
    fn below(&self) -> &Arc<dyn Store> {
        &self.below
    }

    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, StoreResult<Option<Value>>> {
        match self.old_row.lock().take_if(|(row, _)| row == key) {
            Some((_, old)) => std::future::ready(Ok(old)).boxed(),
            None => self.below.get(key),
        }
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, StoreResult<CommitOutcome>> {
        let Some(row) = set.keys.first().filter(|key| key.first() == Some(&b'W')) else {
            return self.below.write(set, decide);
        };
        // Every third write of a job is lost, and the two attempts after it are not.
        let number = self.writes.fetch_add(1, Ordering::SeqCst);
        async move {
            let before = self.below.get(row).await?;
            let outcome = self.below.write(set, decide).await?;
            if !number.is_multiple_of(3) {
                return Ok(outcome);
            }
            *self.old_row.lock() = Some((row.clone(), before));
            Err(zenobe_store::Error::Uncertain { detail: "a test".to_owned() })
        }
        .boxed()
    }
}

/// A step that was written although its answer was lost is not done again: nothing counts twice.
#[tokio::test(start_paused = true)]
async fn steps_whose_answers_are_lost_are_done_once() {
    for is_copied in [false, true] {
        let mut world = World::with_table(MemoryStore::new()).await;
        world.recover(true, None).await;
        fill(&world, 7).await;
        let before = world.state("t").await;
        let id = world.back_up().await;
        change(&mut world, 1).await;
        if is_copied {
            world.work().await;
        }
        world.begin_restore(&id, "restored").await.unwrap();
        let (below, writes, old_row) = (world.store.clone(), AtomicUsize::new(0), Mutex::default());
        let forgetful = Arc::new(ForgetfulStore { below, writes, old_row });
        let script = open(forgetful.clone(), &world.clock).await;
        for _ in 0..2 {
            script.engine().run_pending_work().await.unwrap();
        }
        let writes = forgetful.writes.load(Ordering::SeqCst);
        assert!(writes > 4, "several steps: {writes}");
        reopen(&mut world).await;
        world.work().await;
        assert_eq!(world.state("restored").await, before);
        // Of counters, too.
        let found = world.engine().check_consistency(&world.script.table("restored")).await;
        assert_eq!(found.unwrap(), Vec::new());
    }
}
