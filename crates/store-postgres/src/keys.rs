//! Where a key is stored.
//!
//! An entry of PostgreSQL's B-tree holds about 2,700 bytes, but keys may be longer. Column `h` holds a key's head: its first
//! [`HEAD_BYTES`]. For a longer key, `d` holds a digest of the whole key, and `k` the whole key. So `(h, d)` identifies one key.
//! Rows in the order of `h` are in key order, except for long keys that share a head: those are sorted by `k`.

use sha2::{Digest as _, Sha256};
use zenobe_store::{KeyRange, prefix_end};

pub const HEAD_BYTES: usize = 2400;

/// Not less than any head.
static LAST_HEAD: [u8; HEAD_BYTES] = [0xFF; HEAD_BYTES];

pub fn head(key: &[u8]) -> &[u8] {
    &key[..key.len().min(HEAD_BYTES)]
}

/// The value of `d`: the digest of a long key, otherwise nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(Option<[u8; 32]>);

impl Digest {
    pub fn of(key: &[u8]) -> Digest {
        Digest(is_long(key).then(|| Sha256::digest(key).into()))
    }

    pub fn bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |digest| &digest[..])
    }
}

/// The value of `k`: the whole key, if it is longer than its head.
pub fn whole(key: &[u8]) -> Option<&[u8]> {
    is_long(key).then_some(key)
}

fn is_long(key: &[u8]) -> bool {
    key.len() > HEAD_BYTES
}

/// The first and the last head of the keys in a range.
pub fn heads(range: &KeyRange) -> (&[u8], &[u8]) {
    (head(&range.start), range.end.as_ref().map_or(&LAST_HEAD[..], |end| head(end)))
}

/// The part of a range after all long keys with this head, if any.
pub fn behind_run(run_head: &[u8], range: &KeyRange) -> Option<KeyRange> {
    let start = prefix_end(run_head)?;
    Some(KeyRange { start, end: range.end.clone() })
}

/// The part of a range before all long keys with this head. It includes the head itself, which may be a key.
pub fn before_run(run_head: &[u8], range: &KeyRange) -> KeyRange {
    KeyRange { start: range.start.clone(), end: Some(successor(run_head).into()) }
}

/// The first key after this one.
pub fn successor(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_keys_have_a_digest() {
        let short = vec![7; HEAD_BYTES];
        assert_eq!((head(&short), Digest::of(&short).bytes()), (&short[..], &[][..]));
        assert_eq!(whole(&short), None);
        let long = vec![7; HEAD_BYTES + 1];
        assert_eq!((head(&long), Digest::of(&long).bytes().len()), (&short[..], 32));
        assert_eq!(whole(&long), Some(&long[..]));
        assert_ne!(Digest::of(&long), Digest::of(&vec![7; HEAD_BYTES + 2]));
    }

    #[test]
    fn a_range_goes_on_around_a_run() {
        let head = vec![b'h'; HEAD_BYTES];
        let range = KeyRange::new("a", "z");
        let behind = behind_run(&head, &range).unwrap();
        let before = before_run(&head, &range);
        let long = [&head[..], b"x"].concat();
        for part in [&behind, &before] {
            assert!(!part.contains(&long));
        }
        assert!(before.contains(&head) && !behind.contains(&head));
        assert!(behind.contains(b"i") && before.contains(b"g"));
        assert_eq!(behind_run(&[0xFF; HEAD_BYTES], &KeyRange::all()), None);
    }
}
