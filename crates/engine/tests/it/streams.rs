//! Positions in streams, their errors, paging, and notifications.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use zenobe_engine::clock::Clock;
use zenobe_engine::command::*;
use zenobe_engine::error::{Error, Result, StreamError};
use zenobe_engine::streams::{SequenceNumber, ShardId};
use zenobe_engine::{Engine, EngineOptions, StreamOptions};
use zenobe_store::memory::MemoryStore;

use crate::support::commands::Script;
use crate::support::streams::{description, names, records};
use crate::support::{Fixture, block_on};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// A table `t` with a stream of one shard.
struct World {
    script: Script,
    stream: StreamName,
    shard: ShardId,
}

impl World {
    async fn new() -> World {
        let streams = StreamOptions { shards: 1, ..StreamOptions::default() };
        let options = EngineOptions { streams, ..EngineOptions::default() };
        let mut script = Script::with_fixture(Fixture::with_options(options).await);
        script.run(&["create t pk:S"]).await;
        script.run(&["stream t new"]).await;
        let stream = names(script.engine(), &script.table("t")).await.unwrap().remove(0);
        let shard = description(script.engine(), &stream).await.unwrap().shards[0].id;
        World { script, stream, shard }
    }

    async fn put(&mut self, count: u64) {
        for number in 0..count {
            let command = format!(r#"update t {{"pk": "a"}} ADD n `{}`"#, number + 1);
            self.script.run(&[&command]).await;
        }
    }

    async fn advance(&mut self, by_ms: u64) {
        self.script.run(&[&format!("clock +{by_ms}")]).await;
    }

    async fn position(&self, start: IteratorStart) -> Result<StreamPosition> {
        let shard = self.shard.to_string();
        self.script.engine().shard_iterator(&self.stream, &shard, start).await
    }

    /// The entries that reading from this start yields.
    async fn entries(&self, start: IteratorStart) -> Vec<u64> {
        let position = self.position(start).await.unwrap();
        let page = self.script.engine().get_records(&position, 1_000).await.unwrap();
        page.records.iter().map(|record| record.sequence_number.entry).collect()
    }

    fn number(&self, entry: u64) -> SequenceNumber {
        SequenceNumber { shard: self.shard.number, entry }
    }
}

#[track_caller]
fn check_error<T: std::fmt::Debug>(result: Result<T>, expected: StreamError) {
    match result {
        Err(Error::Stream(error)) => assert_eq!(error, expected),
        other => panic!("{other:?} in place of {expected:?}"),
    }
}

#[test]
fn every_kind_of_start_finds_its_place() {
    block_on(async {
        let mut world = World::new().await;
        assert_eq!(world.entries(IteratorStart::TrimHorizon).await, []);
        assert_eq!(world.entries(IteratorStart::At(world.number(0))).await, []);
        let latest = world.position(IteratorStart::Latest).await.unwrap();
        world.put(2).await;
        world.advance(1_000).await;
        world.put(2).await;
        let page = world.script.engine().get_records(&latest, 1_000).await.unwrap();
        assert_eq!(page.records.len(), 4, "what is written after LATEST is read");
        assert_eq!(world.entries(IteratorStart::TrimHorizon).await, [1, 2, 3, 4]);
        assert_eq!(world.entries(IteratorStart::Latest).await, []);
        assert_eq!(world.entries(IteratorStart::At(world.number(0))).await, [1, 2, 3, 4]);
        assert_eq!(world.entries(IteratorStart::After(world.number(0))).await, [1, 2, 3, 4]);
        assert_eq!(world.entries(IteratorStart::At(world.number(3))).await, [3, 4]);
        assert_eq!(world.entries(IteratorStart::After(world.number(4))).await, []);
        let times = [(0, vec![1, 2, 3, 4]), (1_000_000, vec![1, 2, 3, 4]), (1_000_001, vec![3, 4])];
        for (at_ms, expected) in times {
            assert_eq!(world.entries(IteratorStart::AtTimestamp { at_ms }).await, expected);
        }
        let future = IteratorStart::AtTimestamp { at_ms: 1_001_001 };
        check_error(world.position(future).await, StreamError::TimestampInFuture);
        for number in [world.number(5), SequenceNumber { shard: 2, entry: 1 }] {
            let error = StreamError::SequenceNumberNotInShard;
            check_error(world.position(IteratorStart::At(number)).await, error);
            check_error(world.position(IteratorStart::After(number)).await, error);
        }
    });
}

#[test]
fn records_past_their_retention_are_trimmed() {
    block_on(async {
        let mut world = World::new().await;
        world.put(2).await;
        world.advance(23 * HOUR_MS).await;
        world.put(1).await;
        world.advance(HOUR_MS + 1).await;
        // The background work has not run: nothing is removed yet, but the records are too old.
        assert_eq!(world.entries(IteratorStart::TrimHorizon).await, [3]);
        assert_eq!(world.entries(IteratorStart::AtTimestamp { at_ms: 0 }).await, [3]);
        for start in [
            IteratorStart::At(world.number(0)),
            IteratorStart::At(world.number(2)),
            IteratorStart::After(world.number(0)),
            IteratorStart::After(world.number(1)),
        ] {
            check_error(world.position(start).await, StreamError::Trimmed);
        }
        assert_eq!(world.entries(IteratorStart::At(world.number(3))).await, [3]);
        // A consumer that has read the last trimmed record has missed nothing.
        assert_eq!(world.entries(IteratorStart::After(world.number(2))).await, [3]);
        world.advance(24 * HOUR_MS).await;
        assert_eq!(world.entries(IteratorStart::After(world.number(3))).await, []);
    });
}

#[test]
fn positions_are_good_for_fifteen_minutes() {
    block_on(async {
        let mut world = World::new().await;
        world.put(1).await;
        let position = world.position(IteratorStart::TrimHorizon).await.unwrap();
        world.advance(15 * MINUTE_MS).await;
        let page = world.script.engine().get_records(&position, 10).await.unwrap();
        assert_eq!(page.records.len(), 1);
        world.advance(1).await;
        let late = world.script.engine().get_records(&position, 10).await;
        check_error(late, StreamError::PositionExpired);
        let next = page.next.unwrap();
        assert!(world.script.engine().get_records(&next, 10).await.is_ok());
    });
}

#[test]
fn a_shard_that_is_removed_under_a_reader_is_trimmed() {
    block_on(async {
        let streams = StreamOptions {
            shards: 1,
            shard_rollover_ms: 1_000,
            retention_ms: 2_000,
            ..StreamOptions::default()
        };
        let options = EngineOptions { streams, ..EngineOptions::default() };
        let mut script = Script::with_fixture(Fixture::with_options(options).await);
        for command in ["create t pk:S", "stream t new", r#"put t {"pk": "a"}"#] {
            script.run(&[command]).await;
        }
        let engine = Arc::clone(script.engine());
        let stream = names(&engine, &script.table("t")).await.unwrap().remove(0);
        let shard = description(&engine, &stream).await.unwrap().shards[0].id.to_string();
        let start = IteratorStart::TrimHorizon;
        let position = engine.shard_iterator(&stream, &shard, start).await.unwrap();
        for _ in 0..3 {
            script.run(&["clock +1000"]).await;
            script.run(&["work"]).await;
        }
        check_error(engine.get_records(&position, 10).await, StreamError::Trimmed);
        let again = engine.shard_iterator(&stream, &shard, start).await;
        check_error(again, StreamError::ShardNotFound);
    });
}

/// A clock that follows the runtime's, so tests don't have to wait.
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now_ms(&self) -> u64 {
        1_000_000 + self.0.elapsed().as_millis() as u64
    }
}

/// How many shards a stream has had after each of these times, with background work running.
async fn shards_after(streams: StreamOptions, seconds: &[f64]) -> Vec<usize> {
    let clock = Arc::new(RuntimeClock(Instant::now()));
    let options = EngineOptions { clock, streams, ..EngineOptions::default() };
    let engine = Engine::open(Arc::new(MemoryStore::new()), options).await.unwrap();
    let worker = tokio::spawn(Arc::clone(&engine).run_background());
    // The background work has found nothing to do, and rests.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut script = Script::with_engine(Arc::clone(&engine));
    for command in ["create t pk:S", "stream t new", r#"put t {"pk": "a"}"#, r#"put t {"pk": "b"}"#]
    {
        script.run(&[command]).await;
    }
    let stream = names(&engine, &script.table("t")).await.unwrap().remove(0);
    let mut counts = Vec::new();
    for seconds in seconds {
        tokio::time::sleep(Duration::from_secs_f64(*seconds)).await;
        counts.push(description(&engine, &stream).await.unwrap().shards.len());
    }
    worker.abort();
    counts
}

#[tokio::test(start_paused = true)]
async fn shards_roll_over_within_a_second_of_their_time() {
    let aged = StreamOptions { shard_rollover_ms: 10_000, ..StreamOptions::default() };
    assert_eq!(shards_after(aged, &[9.0, 2.0, 7.0, 3.0]).await, [1, 2, 2, 3]);
    let filled = StreamOptions { shard_records_max: Some(2), ..StreamOptions::default() };
    assert_eq!(shards_after(filled, &[1.0]).await, [2]);
    let with_room = StreamOptions { shard_records_max: Some(3), ..StreamOptions::default() };
    assert_eq!(shards_after(with_room, &[60.0]).await, [1]);
}

#[test]
fn a_closed_shard_ends_and_its_child_goes_on() {
    block_on(async {
        let mut world = World::new().await;
        world.put(3).await;
        let position = world.position(IteratorStart::TrimHorizon).await.unwrap();
        world.advance(4 * HOUR_MS).await;
        world.script.run(&["work"]).await;
        world.put(2).await;
        let position =
            StreamPosition { created_at_ms: position.created_at_ms + 4 * HOUR_MS, ..position };
        let engine = Arc::clone(world.script.engine());
        let page = engine.get_records(&position, 2).await.unwrap();
        assert_eq!(page.records.len(), 2);
        let page = engine.get_records(&page.next.unwrap(), 2).await.unwrap();
        assert_eq!((page.records.len(), page.next), (1, None));
        let shards = description(&engine, &world.stream).await.unwrap().shards;
        let [parent, child] = &shards[..] else { panic!("{shards:?}") };
        assert_eq!(parent.last, Some(world.number(3)));
        assert_eq!((child.parent, child.last), (Some(parent.id), None));
        // At the very end there is nothing, and nothing follows.
        let latest = world.position(IteratorStart::Latest).await.unwrap();
        let page = engine.get_records(&latest, 2).await.unwrap();
        assert_eq!((page.records.len(), page.next), (0, None));
        let all = records(&engine, &world.stream).await.unwrap();
        assert!(all.is_sorted_by_key(|record| record.sequence_number));
        assert_eq!(all.len(), 5);
    });
}

#[test]
fn streams_and_shards_come_in_pages() {
    block_on(async {
        let mut script = Script::new().await;
        for table in ["b", "a", "c"] {
            script.run(&[&format!("create {table} pk:S")]).await;
            script.run(&[&format!("stream {table} keys")]).await;
        }
        script.run(&["stream a off"]).await;
        script.run(&["stream a new"]).await;
        let engine = Arc::clone(script.engine());
        let mut command = ListStreams {
            namespace: script.table("a").namespace,
            table: None,
            start_after: None,
            limit: 2,
        };
        let page = engine.list_streams(&command).await.unwrap();
        let tables = |page: &StreamPage| -> Vec<String> {
            page.streams.iter().map(|stream| stream.table.name.clone()).collect()
        };
        assert_eq!((tables(&page), page.more), (vec!["a".to_owned(), "a".to_owned()], true));
        let last = page.streams.last().unwrap();
        command.start_after = Some((last.table.name.clone(), last.label.clone()));
        let page = engine.list_streams(&command).await.unwrap();
        assert_eq!((tables(&page), page.more), (vec!["b".to_owned(), "c".to_owned()], false));
        // The start may be a stream that no longer exists, of another table.
        command.start_after = Some(("aa".to_owned(), "x".to_owned()));
        command.table = Some("c".to_owned());
        assert_eq!(tables(&engine.list_streams(&command).await.unwrap()), ["c"]);
        command.start_after = Some(("d".to_owned(), String::new()));
        assert_eq!(tables(&engine.list_streams(&command).await.unwrap()), Vec::<String>::new());

        script.run(&["clock +14400000"]).await;
        script.run(&["work"]).await;
        let stream = names(&engine, &script.table("b")).await.unwrap().remove(0);
        let all = description(&engine, &stream).await.unwrap().shards;
        assert_eq!(all.len(), 4);
        let mut command = DescribeStream { stream, start_after: None, children_of: None, limit: 3 };
        let page = engine.describe_stream(&command).await.unwrap();
        assert_eq!((&page.shards[..], page.more), (&all[..3], true));
        command.start_after = Some(page.shards[2].id.to_string());
        let page = engine.describe_stream(&command).await.unwrap();
        assert_eq!((&page.shards[..], page.more), (&all[3..], false));
        command.start_after = None;
        command.children_of = Some(all[1].id.to_string());
        assert_eq!(engine.describe_stream(&command).await.unwrap().shards, all[3..]);
        command.children_of = Some(all[3].id.to_string());
        assert_eq!(engine.describe_stream(&command).await.unwrap().shards, []);
    });
}

#[test]
fn missing_streams_and_shards_are_not_found() {
    block_on(async {
        let world = World::new().await;
        let engine = world.script.engine();
        let missing = StreamName { label: "x".to_owned(), ..world.stream.clone() };
        check_error(description(engine, &missing).await, StreamError::NotFound);
        let other = ShardId { number: 2, ..world.shard }.to_string();
        let start = IteratorStart::Latest;
        for shard in ["", "shardId-00000000000000000000-00000001", &other] {
            let result = engine.shard_iterator(&world.stream, shard, start).await;
            check_error(result, StreamError::ShardNotFound);
        }
        let position = world.position(start).await.unwrap();
        let elsewhere = StreamPosition { stream: missing, ..position };
        check_error(engine.get_records(&elsewhere, 1).await, StreamError::NotFound);
    });
}

#[test]
fn pages_are_bounded_in_bytes() {
    block_on(async {
        let mut world = World::new().await;
        let large = "x".repeat(390_000);
        for number in 0..5 {
            let command = format!(r#"put t {{"pk": "{number}", "v": "{large}"}}"#);
            world.script.run(&[&command]).await;
        }
        let engine = world.script.engine();
        let mut counts = Vec::new();
        let mut position = world.position(IteratorStart::TrimHorizon).await.unwrap();
        while counts.iter().sum::<usize>() < 5 {
            let page = engine.get_records(&position, 1_000).await.unwrap();
            counts.push(page.records.len());
            position = page.next.unwrap();
        }
        assert_eq!(counts, [2, 2, 1]);
    });
}

#[test]
fn readers_are_notified_of_records() {
    block_on(async {
        let mut world = World::new().await;
        world.script.run(&["create other pk:S"]).await;
        world.script.run(&["stream other new"]).await;
        let mut notify = world.script.engine().stream_notify(&world.script.table("t"));
        world.script.run(&[r#"put other {"pk": "a"}"#]).await;
        world.script.run(&["stream other off"]).await;
        assert!(!notify.has_changed().unwrap());
        world.put(1).await;
        assert!(notify.has_changed().unwrap());
        notify.mark_unchanged();
        world.script.run(&[r#"delete t {"pk": "missing"}"#]).await;
        assert!(!notify.has_changed().unwrap());
        world.script.run(&["stream t off"]).await;
        assert!(notify.has_changed().unwrap());
    });
}

#[test]
fn statistics_show_the_age_of_the_oldest_record() {
    block_on(async {
        let mut world = World::new().await;
        let engine = Arc::clone(world.script.engine());
        let statistics = engine.stream_statistics().await.unwrap();
        assert_eq!(statistics.len(), 1);
        assert_eq!((statistics[0].shards, statistics[0].oldest_record_age_ms), (1, None));
        world.put(1).await;
        world.advance(5_000).await;
        world.put(1).await;
        let statistics = engine.stream_statistics().await.unwrap();
        assert_eq!(statistics[0].oldest_record_age_ms, Some(5_000));
        assert!(statistics[0].enabled);
    });
}
