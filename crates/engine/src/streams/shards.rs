//! How a stream is divided: into slots by the hash of the partition key, and into generations by
//! time. A shard is one slot of one generation, and the child of the same slot's shard in the
//! generation before.

use std::fmt;
use std::str::FromStr;

use zenobe_store::Key;

use crate::keyspace;
use crate::schema::{ShardGeneration, StreamSettings, StreamViewType, TableId};

/// More slots would only make streams slow to read.
const SLOTS_MAX: u32 = 1_000;

/// Identifies a shard. Sorting shards by name sorts them by their opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShardId {
    pub opened_at_ms: u64,
    /// Unique within the stream.
    pub number: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a shard")]
pub struct NotAShardId;

impl fmt::Display for ShardId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "shardId-{:020}-{:08x}", self.opened_at_ms, self.number)
    }
}

impl FromStr for ShardId {
    type Err = NotAShardId;

    fn from_str(text: &str) -> Result<ShardId, NotAShardId> {
        let parts = text.strip_prefix("shardId-").and_then(|rest| rest.split_once('-'));
        let (opened, number) = parts.ok_or(NotAShardId)?;
        let id = ShardId {
            opened_at_ms: opened.parse().map_err(|_| NotAShardId)?,
            number: u32::from_str_radix(number, 16).map_err(|_| NotAShardId)?,
        };
        // Only one spelling is valid.
        if id.to_string() == text { Ok(id) } else { Err(NotAShardId) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shard {
    pub id: ShardId,
    /// `None` once the parent has been trimmed.
    pub parent: Option<ShardId>,
    pub closed_at_ms: Option<u64>,
}

impl StreamSettings {
    pub(crate) fn new(
        view_type: StreamViewType,
        label: String,
        slots: u32,
        now_ms: u64,
    ) -> StreamSettings {
        StreamSettings {
            view_type,
            label,
            created_at_ms: now_ms,
            slots: slots.clamp(1, SLOTS_MAX),
            generations: vec![ShardGeneration { number: 0, opened_at_ms: now_ms }],
        }
    }

    /// The slot of a partition, by the hash of its key.
    pub(crate) fn slot_of(&self, hash: u64) -> u32 {
        // The upper half of the product is less than the number of slots.
        ((u128::from(hash) * u128::from(self.slots)) >> 64) as u32
    }

    /// The logs of the open shards, by slot.
    pub(crate) fn open_logs(&self, table: TableId) -> Vec<Key> {
        let open = self.generations.last();
        open.map_or(Vec::new(), |generation| self.logs(table, generation.number))
    }

    /// The logs of the shards of a generation, by slot.
    pub(crate) fn logs(&self, table: TableId, generation: u32) -> Vec<Key> {
        let numbers = (0..self.slots).map(|slot| self.shard_number(generation, slot));
        numbers.map(|number| keyspace::stream_log(table, &self.label, number)).collect()
    }

    /// Closes the open shards and opens their children.
    pub(crate) fn roll_over(&mut self, now_ms: u64) {
        let next = self.generations.last().map_or(
            ShardGeneration { number: 0, opened_at_ms: now_ms },
            // Shard names stay in order even if the clock went back.
            |open| ShardGeneration {
                number: open.number + 1,
                opened_at_ms: now_ms.max(open.opened_at_ms),
            },
        );
        self.generations.push(next);
    }

    /// Removes the generations that closed at or before `horizon_ms`, and returns their numbers.
    pub(crate) fn trim(&mut self, horizon_ms: u64) -> Vec<u32> {
        let trimmed = self.trimmed_count(horizon_ms);
        self.generations.drain(..trimmed).map(|generation| generation.number).collect()
    }

    /// How many generations closed at or before `horizon_ms`. The open one never counts.
    pub(crate) fn trimmed_count(&self, horizon_ms: u64) -> usize {
        let closings = self.generations.iter().skip(1).map(|next| next.opened_at_ms);
        closings.take_while(|&closed_at_ms| closed_at_ms <= horizon_ms).count()
    }

    /// All shards, sorted by name. `disabled_at_ms` closes those that are open.
    pub(crate) fn shards(&self, disabled_at_ms: Option<u64>) -> impl Iterator<Item = Shard> + '_ {
        (0..self.generations.len()).flat_map(move |position| {
            let generation = self.generations[position];
            let parents = position.checked_sub(1).map(|before| self.generations[before]);
            let next = self.generations.get(position + 1);
            let closed_at_ms = next.map(|next| next.opened_at_ms).or(disabled_at_ms);
            (0..self.slots).map(move |slot| Shard {
                id: self.shard_id(generation, slot),
                parent: parents.map(|parents| self.shard_id(parents, slot)),
                closed_at_ms,
            })
        })
    }

    fn shard_id(&self, generation: ShardGeneration, slot: u32) -> ShardId {
        let number = self.shard_number(generation.number, slot);
        ShardId { opened_at_ms: generation.opened_at_ms, number }
    }

    fn shard_number(&self, generation: u32, slot: u32) -> u32 {
        generation * self.slots + slot + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(slots: u32) -> StreamSettings {
        StreamSettings::new(StreamViewType::KeysOnly, "l".to_owned(), slots, 1_000)
    }

    #[test]
    fn slots_divide_the_hashes_evenly() {
        let three = settings(3);
        let third = u64::MAX / 3;
        let slots = [0, third, third + 1, 2 * third + 1, u64::MAX].map(|hash| three.slot_of(hash));
        assert_eq!(slots, [0, 0, 1, 2, 2]);
        assert_eq!(settings(1).slot_of(u64::MAX), 0);
        assert_eq!(settings(0).slots, 1);
    }

    #[test]
    fn children_follow_their_parents() {
        let mut stream = settings(2);
        stream.roll_over(5_000);
        // The clock went back.
        stream.roll_over(4_000);
        let shards: Vec<Shard> = stream.shards(None).collect();
        let numbers: Vec<u32> = shards.iter().map(|shard| shard.id.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        let parents: Vec<Option<u32>> =
            shards.iter().map(|shard| shard.parent.map(|parent| parent.number)).collect();
        assert_eq!(parents, [None, None, Some(1), Some(2), Some(3), Some(4)]);
        let closed: Vec<Option<u64>> = shards.iter().map(|shard| shard.closed_at_ms).collect();
        let five = Some(5_000);
        assert_eq!(closed, [five, five, five, five, None, None]);
        assert!(shards.is_sorted_by_key(|shard| shard.id.to_string()));
        assert!(stream.shards(Some(9)).all(|shard| shard.closed_at_ms.is_some()));
    }

    #[test]
    fn closed_generations_are_trimmed_in_order() {
        let mut stream = settings(2);
        stream.roll_over(5_000);
        stream.roll_over(9_000);
        assert_eq!(stream.trim(4_999), Vec::<u32>::new());
        assert_eq!(stream.trim(5_000), [0]);
        assert_eq!(stream.shards(None).next().unwrap().parent, None);
        assert_eq!(stream.trim(u64::MAX), [1]);
        assert_eq!(stream.generations.len(), 1);
        assert_eq!(stream.open_logs(TableId(1)), stream.logs(TableId(1), 2));
    }

    #[test]
    fn names_have_one_spelling() {
        let id = ShardId { opened_at_ms: 1_765_432_100_250, number: 0xAB };
        let text = "shardId-00000001765432100250-000000ab";
        assert_eq!(id.to_string(), text);
        assert_eq!(text.parse(), Ok(id));
        for other in ["", "shardId-1-1", "shardId-00000001765432100250-000000AB", &text[1..]] {
            assert_eq!(other.parse::<ShardId>(), Err(NotAShardId), "{other}");
        }
    }
}
