//! Where a hot partition is split: between the keys that make it hot.

use zenobe_store::Key;

use crate::keyspace::KeyHash;

/// Fewer samples say nothing about where the heat is.
pub(crate) const SAMPLES_MIN: usize = 16;

/// What may be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Divisible {
    /// Item collections stay whole, as those of a table with local indexes must.
    BetweenCollections,
    /// Also inside an item collection, between two of its items.
    BetweenItems,
}

/// The boundaries at which to split a hot partition, given a sample of the keys that requests used
/// there (without their prefix). `first` and `end` are the partition's own boundaries.
///
/// A key with more than half of the requests gets a partition of its own. Otherwise the requests
/// are split in half. Nothing is returned if that would not help: a single item is never split.
pub(crate) fn boundaries(
    samples: &[Key],
    first: &[u8],
    end: Option<&[u8]>,
    divisible: Divisible,
) -> Vec<Key> {
    let unit = |sample: &Key| match divisible {
        Divisible::BetweenItems => sample.clone(),
        Divisible::BetweenCollections => sample.slice(..sample.len().min(KeyHash::LENGTH)),
    };
    let is_inside = |key: &Key| key[..] > *first && end.is_none_or(|end| key[..] < *end);
    let is_here = |key: &Key| key[..] >= *first && end.is_none_or(|end| key[..] < *end);
    let mut units: Vec<Key> = samples.iter().map(unit).filter(is_here).collect();
    if units.len() < SAMPLES_MIN {
        return Vec::new();
    }
    units.sort_unstable();
    // More than half of a sorted list of equal keys includes its middle.
    let middle = &units[units.len() / 2];
    let hot = units.iter().filter(|unit| *unit == middle).count();
    if 2 * hot > units.len() {
        let around = [middle.clone(), successor(middle, divisible)];
        return around.into_iter().filter(is_inside).collect();
    }
    let boundary = units.iter().filter(|unit| **unit >= *middle).find(|unit| is_inside(unit));
    boundary.cloned().into_iter().collect()
}

/// The first key after a unit and everything that belongs to it.
fn successor(unit: &Key, divisible: Divisible) -> Key {
    match (divisible, unit.first_chunk::<{ KeyHash::LENGTH }>()) {
        (Divisible::BetweenCollections, Some(hash)) => {
            let next = u128::from_be_bytes(*hash).saturating_add(1);
            Key::copy_from_slice(&next.to_be_bytes())
        }
        _ => Key::from([&unit[..], &[0]].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::Divisible::{BetweenCollections, BetweenItems};
    use super::*;

    fn key(hash: u8, rest: &str) -> Key {
        let mut bytes = vec![0; KeyHash::LENGTH];
        bytes[0] = hash;
        bytes.extend_from_slice(rest.as_bytes());
        bytes.into()
    }

    fn repeated(keys: &[Key], times: usize) -> Vec<Key> {
        keys.iter().flat_map(|key| vec![key.clone(); times]).collect()
    }

    #[test]
    fn heat_is_divided_in_half() {
        let keys: Vec<Key> = (10..50).map(|hash| key(hash, "k")).collect();
        let expected = [key(30, "k")];
        assert_eq!(boundaries(&keys, b"", None, BetweenItems), expected);
        let whole = boundaries(&keys, b"", None, BetweenCollections);
        assert_eq!(whole, [key(30, "")]);
        assert!(boundaries(&keys[..5], b"", None, BetweenItems).is_empty(), "too few to say");
    }

    #[test]
    fn a_hot_item_is_isolated_and_never_divided() {
        let mut samples = repeated(&[key(20, "hot")], 20);
        samples.extend(repeated(&[key(10, "a"), key(30, "b")], 5));
        let around = boundaries(&samples, b"", None, BetweenItems);
        assert_eq!(around, [key(20, "hot"), key(20, "hot\0")]);
        let [first, end] = [&around[0], &around[1]];
        assert!(boundaries(&samples, first, Some(end), BetweenItems).is_empty());
        // A hot item collection that has to stay whole.
        let around = boundaries(&samples, b"", None, BetweenCollections);
        let mut next = key(20, "").to_vec();
        next[KeyHash::LENGTH - 1] = 1;
        assert_eq!(around, [key(20, ""), Key::from(next)]);
        let [first, end] = [&around[0], &around[1]];
        assert!(boundaries(&samples, first, Some(end), BetweenCollections).is_empty());
    }

    #[test]
    fn a_hot_collection_is_divided_by_its_sort_key() {
        let sorts: Vec<Key> = (0..40).map(|sort| key(20, &format!("{sort:02}"))).collect();
        assert_eq!(boundaries(&sorts, b"", None, BetweenItems), [key(20, "20")]);
        // The upper half again, within its own boundaries.
        let upper = boundaries(&sorts, &key(20, "20"), None, BetweenItems);
        assert_eq!(upper, [key(20, "30")]);
    }

    #[test]
    fn a_boundary_is_never_the_partitions_own() {
        let mut samples = repeated(&[key(20, "a")], 10);
        samples.extend(repeated(&[key(21, "b")], 10));
        assert_eq!(boundaries(&samples, &key(20, "a"), None, BetweenItems), [key(21, "b")]);
    }
}
