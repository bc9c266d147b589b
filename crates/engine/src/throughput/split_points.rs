//! Where a hot partition is split: between the keys that make it hot. [`super::partition_upkeep`] decides when.

use std::collections::{HashMap, HashSet};

use zenobe_store::Key;

use crate::keyspace::KeyHash;

/// Fewer samples say nothing about where the heat is.
pub(crate) const SAMPLES_MIN: usize = 16;

/// How the hot partitions of a table or an index may be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SplitRules {
    pub divisible: Divisible,
    /// Whether a key with most of the traffic gets a partition of its own.
    pub isolates_hot_keys: bool,
}

/// What may be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Divisible {
    /// Item collections stay whole, as those of a table with local indexes must.
    BetweenCollections,
    /// Also inside an item collection, between two of its items.
    BetweenItems,
}

/// The boundaries at which to split a hot partition, given a sample of the keys of its traffic
/// (without their prefix), oldest first. `first` and `end` are the partition's own boundaries.
///
/// A key with more than half of the traffic gets a partition of its own. Otherwise the traffic is
/// split in half. Nothing is returned if that would not help: a single item is never split, and an
/// item collection whose sort keys only grow is not split inside, because all of its traffic would
/// move on to the upper part.
pub(crate) fn boundaries(
    samples: &[Key],
    first: &[u8],
    end: Option<&[u8]>,
    rules: SplitRules,
) -> Vec<Key> {
    let appended = appended_collections(samples);
    let is_whole = |key: &Key| {
        rules.divisible == Divisible::BetweenCollections
            || collection(key).is_some_and(|hash| appended.contains(hash))
    };
    let unit = |sample: &Key| match is_whole(sample) {
        false => sample.clone(),
        // A partition may begin inside the collection.
        true => sample.slice(..sample.len().min(KeyHash::LENGTH)).max(Key::copy_from_slice(first)),
    };
    let is_inside = |key: &Key| key[..] > *first && end.is_none_or(|end| key[..] < *end);
    let is_here = |key: &Key| key[..] >= *first && end.is_none_or(|end| key[..] < *end);
    let mut units: Vec<Key> = samples.iter().filter(|key| is_here(key)).map(unit).collect();
    if units.len() < SAMPLES_MIN {
        return Vec::new();
    }
    units.sort_unstable();
    // If one key fills more than half of a sorted list, it is also in the middle.
    let middle = &units[units.len() / 2];
    let hot = units.iter().filter(|unit| *unit == middle).count();
    if 2 * hot > units.len() {
        if !rules.isolates_hot_keys {
            return Vec::new();
        }
        let around = [middle.clone(), successor(middle, is_whole(middle))];
        return around.into_iter().filter(is_inside).collect();
    }
    let boundary = units.iter().filter(|unit| **unit >= *middle).find(|unit| is_inside(unit));
    boundary.cloned().into_iter().collect()
}

/// The first key after a unit and everything that belongs to it. A whole unit is an item collection,
/// any other an item.
fn successor(unit: &Key, is_whole: bool) -> Key {
    match collection(unit).filter(|_| is_whole) {
        Some(hash) => {
            let next = u128::from_be_bytes(*hash).saturating_add(1);
            Key::copy_from_slice(&next.to_be_bytes())
        }
        None => Key::from([&unit[..], &[0]].concat()),
    }
}

/// The hash of the partition key.
fn collection(key: &Key) -> Option<&Hash> {
    key.first_chunk()
}

type Hash = [u8; KeyHash::LENGTH];

/// The item collections whose traffic moves towards ever greater sort keys: nearly all of its newer
/// half lies beyond nearly all of its older half. A few stragglers don't matter.
fn appended_collections(samples: &[Key]) -> HashSet<&Hash> {
    let mut by_collection: HashMap<&Hash, Vec<&Key>> = HashMap::new();
    for sample in samples {
        if let Some(hash) = collection(sample) {
            by_collection.entry(hash).or_default().push(sample);
        }
    }
    by_collection.retain(|_, keys| keys.len() >= SAMPLES_MIN && is_appended(keys));
    by_collection.into_keys().collect()
}

fn is_appended(keys: &[&Key]) -> bool {
    let (older, newer) = keys.split_at(keys.len() / 2);
    let mut older = older.to_vec();
    older.sort_unstable();
    let end = older[9 * (older.len() - 1) / 10];
    let beyond = newer.iter().filter(|key| **key > end).count();
    10 * beyond >= 9 * newer.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BETWEEN_ITEMS: SplitRules =
        SplitRules { divisible: Divisible::BetweenItems, isolates_hot_keys: true };
    const BETWEEN_COLLECTIONS: SplitRules =
        SplitRules { divisible: Divisible::BetweenCollections, ..BETWEEN_ITEMS };

    fn key(hash: u8, rest: &str) -> Key {
        let mut bytes = vec![0; KeyHash::LENGTH];
        bytes[0] = hash;
        bytes.extend_from_slice(rest.as_bytes());
        bytes.into()
    }

    fn repeated(keys: &[Key], times: usize) -> Vec<Key> {
        keys.iter().flat_map(|key| vec![key.clone(); times]).collect()
    }

    /// Numbers in an order that neither grows nor shrinks.
    fn shuffled(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |number| number * 17 % count)
    }

    #[test]
    fn heat_is_divided_in_half() {
        let keys: Vec<Key> = (10..50).map(|hash| key(hash, "k")).collect();
        let expected = [key(30, "k")];
        assert_eq!(boundaries(&keys, b"", None, BETWEEN_ITEMS), expected);
        let whole = boundaries(&keys, b"", None, BETWEEN_COLLECTIONS);
        assert_eq!(whole, [key(30, "")]);
        assert!(boundaries(&keys[..5], b"", None, BETWEEN_ITEMS).is_empty(), "too few to say");
    }

    #[test]
    fn a_hot_item_is_isolated_and_never_divided() {
        let mut samples = repeated(&[key(20, "hot")], 20);
        samples.extend(repeated(&[key(10, "a"), key(30, "b")], 5));
        let around = boundaries(&samples, b"", None, BETWEEN_ITEMS);
        assert_eq!(around, [key(20, "hot"), key(20, "hot\0")]);
        let [first, end] = [&around[0], &around[1]];
        assert!(boundaries(&samples, first, Some(end), BETWEEN_ITEMS).is_empty());
        let shared = SplitRules { isolates_hot_keys: false, ..BETWEEN_ITEMS };
        assert!(boundaries(&samples, b"", None, shared).is_empty());
        // A hot item collection that has to stay whole.
        let around = boundaries(&samples, b"", None, BETWEEN_COLLECTIONS);
        let mut next = key(20, "").to_vec();
        next[KeyHash::LENGTH - 1] = 1;
        assert_eq!(around, [key(20, ""), Key::from(next)]);
        let [first, end] = [&around[0], &around[1]];
        assert!(boundaries(&samples, first, Some(end), BETWEEN_COLLECTIONS).is_empty());
    }

    #[test]
    fn a_hot_collection_is_divided_by_its_sort_key() {
        let sorts: Vec<Key> = shuffled(40).map(|sort| key(20, &format!("{sort:02}"))).collect();
        assert_eq!(boundaries(&sorts, b"", None, BETWEEN_ITEMS), [key(20, "20")]);
        // The upper half again, within its own boundaries.
        let upper = boundaries(&sorts, &key(20, "20"), None, BETWEEN_ITEMS);
        assert_eq!(upper, [key(20, "30")]);
    }

    /// The upper part would be as hot as the whole, again and again.
    #[test]
    fn a_collection_that_only_grows_is_not_divided() {
        let mut sorts: Vec<Key> = (0..200).map(|sort| key(20, &format!("{sort:03}"))).collect();
        // Several writers are never quite in step.
        for pair in sorts.chunks_exact_mut(2) {
            pair.swap(0, 1);
        }
        let around = boundaries(&sorts, b"", None, BETWEEN_ITEMS);
        let mut next = key(20, "").to_vec();
        next[KeyHash::LENGTH - 1] = 1;
        assert_eq!(around, [key(20, ""), Key::from(next.clone())], "it is isolated as a whole");
        assert!(boundaries(&sorts, &around[0], Some(&around[1]), BETWEEN_ITEMS).is_empty());
        // Also where it has been divided before.
        let end = &around[1];
        assert!(boundaries(&sorts, &key(20, "050"), Some(end), BETWEEN_ITEMS).is_empty());
        assert_eq!(boundaries(&sorts, &key(20, "050"), None, BETWEEN_ITEMS), [Key::from(next)]);
        // Others in the partition are divided as ever.
        let others = shuffled(400).map(|sort| key(30, &format!("{sort:03}")));
        let mixed: Vec<Key> = sorts.into_iter().chain(others).collect();
        assert_eq!(boundaries(&mixed, b"", None, BETWEEN_ITEMS), [key(30, "100")]);
    }

    #[test]
    fn a_boundary_is_never_the_partitions_own() {
        let mut samples = repeated(&[key(20, "a")], 10);
        samples.extend(repeated(&[key(21, "b")], 10));
        assert_eq!(boundaries(&samples, &key(20, "a"), None, BETWEEN_ITEMS), [key(21, "b")]);
    }
}
