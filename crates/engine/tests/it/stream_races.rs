//! Writers, roll-over and a consumer at once: the consumer misses nothing and sees each item's
//! changes in order.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zenobe_engine::command::*;
use zenobe_engine::streams::ShardId;
use zenobe_engine::{Engine, EngineOptions, StreamOptions};
use zenobe_store::memory::MemoryStore;
use zenobe_value::EncodedItem;

use crate::support::commands::Script;
use crate::support::streams::{description, names};

const WRITERS: u32 = 4;
const WRITES: u32 = 400;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_consumer_follows_writers_across_shards() {
    let streams = StreamOptions {
        shards: 2,
        shard_records_max: Some(20),
        retention_ms: u64::MAX,
        ..StreamOptions::default()
    };
    let options = EngineOptions { streams, ..EngineOptions::default() };
    let engine = Engine::open(Arc::new(MemoryStore::new()), options).await.unwrap();
    let mut setup = Script::with_engine(Arc::clone(&engine));
    setup.run(&["create t pk:S"]).await;
    setup.run(&["stream t both"]).await;
    let stream = names(&engine, &setup.table("t")).await.unwrap().remove(0);

    let [done, rolled] = [false, false].map(|is_so| Arc::new(AtomicBool::new(is_so)));
    let (ends, begun) = (Arc::clone(&done), Arc::clone(&rolled));
    let rolling = tokio::spawn(roll_over(Arc::clone(&engine), stream.clone(), ends, begun));
    let consuming = tokio::spawn(consume(Arc::clone(&engine), stream.clone(), Arc::clone(&done)));
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| tokio::spawn(write(Arc::clone(&engine), number, Arc::clone(&rolled))))
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    done.store(true, Ordering::SeqCst);
    rolling.await.unwrap();
    let copy = consuming.await.unwrap();

    let page = PageRequest { consistent: true, ..PageRequest::default() };
    let scan = Scan { table: setup.table("t"), index: None, segment: None, page };
    let items = engine.scan(&scan).await.unwrap().items.into_items();
    assert_eq!(copy, items.into_iter().map(|item| (key_of(&item), item)).collect());
    let shards = description(&engine, &stream).await.unwrap().shards;
    assert!(shards.len() > 2, "the shards have rolled over");
    let records: u64 = shards.iter().filter_map(|shard| Some(shard.last?.entry)).sum();
    assert!(records > u64::from(WRITES), "most records are in closed shards");
}

async fn write(engine: Arc<Engine>, number: u32, rolled: Arc<AtomicBool>) {
    let mut script = Script::with_engine(engine);
    for turn in 0..WRITES {
        // Otherwise, on a busy machine, everything could be written before anything else happens.
        while turn == WRITES / 2 && !rolled.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        // Keys that all writers share, in a different order for each writer.
        let key = (turn * (2 * number + 1) + number) % 11;
        let command = match turn % 5 {
            0 => format!(r#"delete t {{"pk": "{key}"}}"#),
            1 => format!(r#"put t {{"pk": "{key}", "by": {number}, "turn": {turn}}}"#),
            _ => format!(r#"update t {{"pk": "{key}"}} ADD n `1`"#),
        };
        script.run(&[&command]).await;
        // The memory store never waits, so the others only run if this task yields.
        tokio::task::yield_now().await;
    }
}

async fn roll_over(
    engine: Arc<Engine>,
    stream: StreamName,
    done: Arc<AtomicBool>,
    rolled: Arc<AtomicBool>,
) {
    loop {
        let was_done = done.load(Ordering::SeqCst);
        engine.run_pending_work().await.unwrap();
        let shards = description(&engine, &stream).await.unwrap().shards;
        rolled.fetch_or(shards.len() > 2, Ordering::SeqCst);
        if was_done {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// How far a shard has been read: to a position, or to its end (`None`).
type Progress = HashMap<ShardId, Option<StreamPosition>>;

/// Reads the stream as it grows, parents before children, until the writers are done and nothing is left.
async fn consume(
    engine: Arc<Engine>,
    stream: StreamName,
    done: Arc<AtomicBool>,
) -> BTreeMap<Vec<u8>, EncodedItem> {
    let mut notify = engine.stream_notify(&stream.table);
    let (mut copy, mut progress) = (BTreeMap::new(), Progress::new());
    loop {
        let was_done = done.load(Ordering::SeqCst);
        notify.mark_unchanged();
        let mut found = false;
        for shard in description(&engine, &stream).await.unwrap().shards {
            let parent = shard.parent.map(|parent| progress.get(&parent));
            if parent.is_none_or(|parent| parent == Some(&None)) {
                found |= read(&engine, &stream, shard.id, &mut progress, &mut copy).await;
            }
        }
        if was_done && !found {
            return copy;
        }
        if !found {
            let wait = notify.changed();
            let _ = tokio::time::timeout(std::time::Duration::from_millis(50), wait).await;
        }
    }
}

/// Reads a shard as far as possible for now. Returns whether there was anything.
async fn read(
    engine: &Engine,
    stream: &StreamName,
    shard: ShardId,
    progress: &mut Progress,
    copy: &mut BTreeMap<Vec<u8>, EncodedItem>,
) -> bool {
    let position = match progress.get(&shard) {
        Some(Some(position)) => position.clone(),
        Some(None) => return false,
        None => {
            let start = IteratorStart::TrimHorizon;
            engine.shard_iterator(stream, &shard.to_string(), start).await.unwrap()
        }
    };
    let page = engine.get_records(&position, 7).await.unwrap();
    let found = !page.records.is_empty() || page.next.is_none();
    progress.insert(shard, page.next);
    for record in page.records {
        let key = record.keys.as_bytes().to_vec();
        let before = match &record.new {
            Some(item) => copy.insert(key, item.clone()),
            None => copy.remove(&key),
        };
        assert_eq!(before, record.old, "out of order: {:?}", record.sequence_number);
    }
    found
}

fn key_of(item: &EncodedItem) -> Vec<u8> {
    item.as_item().retain(|name| name == "pk").as_bytes().to_vec()
}
