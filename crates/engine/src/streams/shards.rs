//! How a stream is divided: into slots by the hash of the partition key, and into generations by
//! time. A shard is one slot of one generation, and the child of the same slot's shard in the
//! generation before. If that was split, each of its slots has become two, and each of its shards
//! has two children.

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
            generations: vec![ShardGeneration::of_stream(0, now_ms, slots.clamp(1, SLOTS_MAX))],
        }
    }

    /// The slot of a partition among the open shards, by the hash of its key.
    pub(crate) fn slot_of(&self, hash: u64) -> u32 {
        let slots = self.generations.last().map_or(self.slots, |open| open.slots);
        // The upper half of the product is less than the number of slots.
        ((u128::from(hash) * u128::from(slots)) >> 64) as u32
    }

    /// The logs of the open shards, by slot.
    pub(crate) fn open_logs(&self, table: TableId) -> Vec<Key> {
        let open = self.generations.last();
        open.map_or(Vec::new(), |generation| self.logs(table, generation))
    }

    /// The logs of the shards of a generation, by slot.
    pub(crate) fn logs(&self, table: TableId, generation: &ShardGeneration) -> Vec<Key> {
        let numbers = (0..generation.slots).map(|slot| generation.first_shard + slot);
        numbers.map(|number| keyspace::stream_log(table, &self.label, number)).collect()
    }

    /// Closes the open shards and opens their children: one for each, or two if they are split.
    pub(crate) fn open_children(&mut self, children: Children, now_ms: u64) {
        let next = self.generations.last().map_or(
            ShardGeneration::of_stream(0, now_ms, self.slots),
            |open| ShardGeneration {
                number: open.number + 1,
                // Shard names stay in order even if the clock went back.
                opened_at_ms: now_ms.max(open.opened_at_ms),
                slots: match children {
                    Children::One => open.slots,
                    Children::Two => open.slots * 2,
                },
                first_shard: open.first_shard + open.slots,
            },
        );
        self.generations.push(next);
    }

    /// Whether the open shards may become twice as many.
    pub(crate) fn can_split(&self) -> bool {
        self.generations.last().is_some_and(|open| open.slots * 2 <= SLOTS_MAX)
    }

    /// Removes the generations that closed at or before `horizon_ms`, and returns them.
    pub(crate) fn trim(&mut self, horizon_ms: u64) -> Vec<ShardGeneration> {
        let trimmed = self.trimmed_count(horizon_ms);
        self.generations.drain(..trimmed).collect()
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
            (0..generation.slots).map(move |slot| Shard {
                id: generation.shard_id(slot),
                parent: parents
                    .map(|parents| parents.shard_id(parents.slot_above(slot, generation))),
                closed_at_ms,
            })
        })
    }
}

/// How many children each open shard gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Children {
    One,
    Two,
}

impl ShardGeneration {
    /// A generation of a stream whose shards were never split. Its row holds nothing else about it.
    pub(crate) fn of_stream(number: u32, opened_at_ms: u64, slots: u32) -> ShardGeneration {
        let first_shard = number.wrapping_mul(slots).wrapping_add(1);
        ShardGeneration { number, opened_at_ms, slots, first_shard }
    }

    /// The slot that holds a slot of the generation after this one.
    fn slot_above(&self, slot: u32, next: ShardGeneration) -> u32 {
        (u64::from(slot) * u64::from(self.slots) / u64::from(next.slots)) as u32
    }

    fn shard_id(&self, slot: u32) -> ShardId {
        ShardId { opened_at_ms: self.opened_at_ms, number: self.first_shard + slot }
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
        stream.open_children(Children::One, 5_000);
        // The clock went back.
        stream.open_children(Children::One, 4_000);
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
        stream.open_children(Children::One, 5_000);
        stream.open_children(Children::One, 9_000);
        let generation = |number, opened_at_ms| ShardGeneration::of_stream(number, opened_at_ms, 2);
        assert_eq!(stream.trim(4_999), []);
        assert_eq!(stream.trim(5_000), [generation(0, 1_000)]);
        assert_eq!(stream.shards(None).next().unwrap().parent, None);
        assert_eq!(stream.trim(u64::MAX), [generation(1, 5_000)]);
        assert_eq!(stream.generations, [generation(2, 9_000)]);
        let logs = stream.logs(TableId(1), &generation(2, 9_000));
        assert_eq!(stream.open_logs(TableId(1)), logs);
    }

    /// Every hash stays in the lineage of its shard.
    #[test]
    fn a_split_shard_has_two_children() {
        let mut stream = settings(3);
        let hashes: Vec<u64> = (0..1_000).map(|number| number * (u64::MAX / 1_000)).collect();
        let before: Vec<u32> = hashes.iter().map(|hash| stream.slot_of(*hash)).collect();
        stream.open_children(Children::Two, 5_000);
        stream.open_children(Children::One, 6_000);
        for (hash, before) in hashes.iter().zip(before) {
            assert_eq!(stream.slot_of(*hash) / 2, before, "{hash}");
        }
        let shards: Vec<Shard> = stream.shards(None).collect();
        let numbers: Vec<u32> = shards.iter().map(|shard| shard.id.number).collect();
        assert_eq!(numbers, (1..=15).collect::<Vec<u32>>());
        let parents: Vec<u32> =
            shards[3..].iter().map(|shard| shard.parent.unwrap().number).collect();
        assert_eq!(parents, [1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(stream.open_logs(TableId(1)).len(), 6);
        assert!(!settings(501).can_split() && settings(500).can_split());
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
