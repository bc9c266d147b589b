//! Replayable randomness.

use std::env;

use rand::SeedableRng;
use rand::rngs::StdRng;

/// The seed of one random test. `ZENOBE_SEED` sets it; otherwise it is drawn and printed, and
/// libtest shows the line when the test fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// Takes the seed from the environment, or draws one, and prints it.
    ///
    /// # Panics
    /// If `ZENOBE_SEED` is not a number: a replay must not silently become another run.
    pub fn announce(test: &str) -> Seed {
        let seed = match env::var("ZENOBE_SEED") {
            Ok(text) => text.parse().expect("ZENOBE_SEED is an unsigned 64-bit number"),
            Err(_) => rand::random(),
        };
        eprintln!("{test}: replay with ZENOBE_SEED={seed}");
        Seed(seed)
    }

    pub fn value(self) -> u64 {
        self.0
    }

    /// An independent generator for one part of the test (a thread, a round), so that the order in
    /// which the parts draw does not matter.
    pub fn generator(self, part: u64) -> StdRng {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&part.to_le_bytes());
        StdRng::from_seed(bytes)
    }
}

impl From<u64> for Seed {
    fn from(value: u64) -> Seed {
        Seed(value)
    }
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    #[test]
    fn a_part_replays_and_parts_differ() {
        let seed = Seed::from(7);
        assert_eq!(seed.generator(1).next_u64(), seed.generator(1).next_u64());
        assert_ne!(seed.generator(1).next_u64(), seed.generator(2).next_u64());
    }
}
