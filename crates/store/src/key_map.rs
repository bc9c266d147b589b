//! Maps by key for backends. Clients choose most bytes of a key, so its hash has a secret seed. Otherwise they could choose thousands of
//! keys with equal hashes, and each lookup would compare them all, under a lock that other writes wait for.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64_with_seed;

pub type KeyMap<K, V> = HashMap<K, V, SecretSeed>;
pub type KeySet<K> = HashSet<K, SecretSeed>;

/// The same in the whole process.
static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(()));

#[derive(Debug, Clone, Copy)]
pub struct SecretSeed(u64);

impl Default for SecretSeed {
    fn default() -> SecretSeed {
        SecretSeed(*SEED)
    }
}

impl BuildHasher for SecretSeed {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(self.0)
    }
}

/// The seed, and then the hash.
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    /// The length of a key. The hash of its bytes depends on it already.
    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// With the public constants of a hash without a secret, a chosen word makes the next one count for nothing.
    #[test]
    fn no_bytes_of_a_key_count_for_nothing() {
        const CONSTANTS: [u64; 4] = [
            0x243f_6a88_85a3_08d3,
            0x1319_8a2e_0370_7344,
            0xa409_3822_299f_31d0,
            0xf135_7aea_2e62_a9c5,
        ];
        let seeds = SecretSeed::default();
        for constant in CONSTANTS {
            for chosen_at in [0, 8, 16, 24] {
                for free_at in (0..48).step_by(8).filter(|at| *at != chosen_at) {
                    let hashes: HashSet<u64> = (0..1_000_u64)
                        .map(|free| {
                            let mut key = [7; 48];
                            key[chosen_at..][..8].copy_from_slice(&constant.to_le_bytes());
                            key[free_at..][..8].copy_from_slice(&free.to_be_bytes());
                            seeds.hash_one(&key[..])
                        })
                        .collect();
                    assert_eq!(hashes.len(), 1_000, "{constant:x} at {chosen_at}, {free_at}");
                }
            }
        }
    }

    #[test]
    fn another_seed_gives_other_hashes() {
        let hash = |seed| SecretSeed(seed).hash_one(&b"key"[..]);
        assert_ne!(hash(1), hash(2));
        assert_eq!(hash(1), SecretSeed(1).hash_one(bytes::Bytes::from_static(b"key")));
    }
}
