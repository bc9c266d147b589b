//! Decides which shards to work on. It is pure: from the state of the stream and the store to the
//! next steps.
//!
//! A shard waits for its parent, and a stream for the one enabled before it, so that the changes of
//! an item are delivered in order.

use std::collections::BTreeMap;

use zenobe_engine::consumers::{Checkpoint, ShardName};

use super::source::{KnownStream, ShardSummary};

#[derive(Debug, PartialEq, Eq)]
pub struct WorkPlan {
    /// Shards that are ready, and where to start in each.
    pub runnable: Vec<(ShardName, Checkpoint)>,
    /// Checkpoints of shards that are gone.
    pub forgotten: Vec<ShardName>,
}

/// `streams` are sorted, oldest first. A shard without a checkpoint was created after the trigger
/// and starts with its first record. Streams before the first one with a checkpoint are older than
/// the trigger.
pub fn plan(streams: &[KnownStream], checkpoints: &BTreeMap<ShardName, Checkpoint>) -> WorkPlan {
    let has_checkpoints = |arn: &str| checkpoints.keys().any(|shard| shard.stream == arn);
    let first = streams.iter().position(|stream| has_checkpoints(&stream.arn)).unwrap_or(0);
    let mut runnable = Vec::new();
    for stream in &streams[first.min(streams.len())..] {
        let unfinished = unfinished_shards(stream, checkpoints);
        if unfinished.is_empty() && !stream.detail.is_enabled {
            continue;
        }
        runnable = unfinished;
        break;
    }
    WorkPlan { runnable, forgotten: forgotten(streams, checkpoints) }
}

/// The shards of a stream that are ready. Empty if all are finished.
fn unfinished_shards(
    stream: &KnownStream,
    checkpoints: &BTreeMap<ShardName, Checkpoint>,
) -> Vec<(ShardName, Checkpoint)> {
    let checkpoint = |shard: &str| {
        let name = ShardName { stream: stream.arn.clone(), shard: shard.to_owned() };
        checkpoints.get(&name).cloned().unwrap_or(Checkpoint::Oldest)
    };
    let is_listed = |id: &str| stream.detail.shards.iter().any(|shard| shard.id == id);
    let is_ready = |shard: &ShardSummary| {
        shard
            .parent
            .as_deref()
            .is_none_or(|parent| !is_listed(parent) || checkpoint(parent) == Checkpoint::Finished)
    };
    let shards = stream.detail.shards.iter();
    let ready = shards.filter(|shard| is_ready(shard)).map(|shard| {
        let name = ShardName { stream: stream.arn.clone(), shard: shard.id.clone() };
        (name, checkpoint(&shard.id))
    });
    ready.filter(|(_, checkpoint)| *checkpoint != Checkpoint::Finished).collect()
}

/// Checkpoints of shards that are no longer listed, as long as others remain to show that the
/// trigger has started.
fn forgotten(
    streams: &[KnownStream],
    checkpoints: &BTreeMap<ShardName, Checkpoint>,
) -> Vec<ShardName> {
    let is_listed = |name: &ShardName| {
        let mut streams = streams.iter().filter(|stream| stream.arn == name.stream);
        streams.any(|stream| stream.detail.shards.iter().any(|shard| shard.id == name.shard))
    };
    let (listed, gone): (Vec<_>, Vec<_>) = checkpoints.keys().partition(|name| is_listed(name));
    match listed.is_empty() {
        true => Vec::new(),
        false => gone.into_iter().cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::StreamDetail;
    use super::*;

    /// `a b<a c<b`: shards with their parents.
    fn stream(arn: &str, is_enabled: bool, shards: &str) -> KnownStream {
        let shard = |text: &str| {
            let (id, parent) = text.split_once('<').map_or((text, None), |(id, p)| (id, Some(p)));
            ShardSummary { id: id.into(), parent: parent.map(str::to_owned), is_closed: false }
        };
        let shards = shards.split_whitespace().map(shard).collect();
        KnownStream { arn: arn.into(), detail: StreamDetail { is_enabled, shards } }
    }

    /// `s/a=done s/b=5`: checkpoints.
    fn checkpoints(text: &str) -> BTreeMap<ShardName, Checkpoint> {
        let checkpoint = |text: &str| {
            let (name, state) = text.split_once('=').unwrap();
            let (stream, shard) = name.split_once('/').unwrap();
            let state = match state {
                "done" => Checkpoint::Finished,
                sequence => Checkpoint::After { sequence: sequence.into() },
            };
            (ShardName { stream: stream.into(), shard: shard.into() }, state)
        };
        text.split_whitespace().map(checkpoint).collect()
    }

    fn check(streams: &[KnownStream], saved: &str, runnable: &str, forgotten: &str) {
        let plan = plan(streams, &checkpoints(saved));
        let name = |name: &ShardName| format!("{}/{}", name.stream, name.shard);
        let names: Vec<_> = plan.runnable.iter().map(|(shard, _)| name(shard)).collect();
        assert_eq!(names.join(" "), runnable, "{saved}");
        let names: Vec<_> = plan.forgotten.iter().map(name).collect();
        assert_eq!(names.join(" "), forgotten, "{saved}");
    }

    #[test]
    fn children_wait_for_their_parents() {
        let streams = [stream("s", true, "a b c<a d<b")];
        check(&streams, "s/a=1 s/b=2", "s/a s/b", "");
        check(&streams, "s/a=done s/b=2", "s/b s/c", "");
        check(&streams, "s/a=done s/b=done s/c=1", "s/c s/d", "");
        check(&streams, "s/a=done s/b=done s/c=done s/d=done", "", "");
    }

    #[test]
    fn missing_parents_block_nobody() {
        let streams = [stream("s", true, "c<a d<b")];
        check(&streams, "s/a=done s/b=7 s/c=1", "s/c s/d", "s/a s/b");
        // With nothing else left, the old checkpoints still show that the trigger has started.
        check(&streams, "s/a=done s/b=7", "s/c s/d", "");
    }

    #[test]
    fn a_later_stream_waits_for_the_earlier_one() {
        let streams = [stream("r", false, "x"), stream("s", false, "a"), stream("t", true, "b")];
        check(&streams, "s/a=1", "s/a", "");
        check(&streams, "s/a=done", "t/b", "");
        check(&streams, "s/a=done t/b=3", "t/b", "");
        let streams = [stream("s", false, "a"), stream("t", false, "b")];
        check(&streams, "s/a=done t/b=done", "", "");
        check(&[], "s/a=done", "", "");
    }

    #[test]
    fn a_shard_without_a_checkpoint_begins_with_its_first_record() {
        let plan = plan(&[stream("s", true, "a b<a")], &checkpoints("s/a=done"));
        assert_eq!(plan.runnable[0].1, Checkpoint::Oldest);
    }
}
