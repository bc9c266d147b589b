//! The engine's one source of randomness, seedable so that a test can replay it.

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub(crate) struct Random {
    generator: Mutex<StdRng>,
}

impl Random {
    pub(crate) fn new(seed: Option<u64>) -> Random {
        let generator = match seed {
            Some(seed) => StdRng::seed_from_u64(seed),
            None => rand::make_rng(),
        };
        Random { generator: Mutex::new(generator) }
    }

    pub(crate) fn bits(&self) -> u64 {
        self.generator.lock().random()
    }

    /// A random UUID (version 4) in its usual form.
    pub(crate) fn uuid(&self) -> String {
        format_uuid(self.generator.lock().random())
    }
}

/// Formats 128 bits as a version 4 UUID. The version and the variant replace six of the bits.
pub(crate) fn format_uuid(bits: u128) -> String {
    const VERSION_MASK: u128 = 0xF << 76;
    const VARIANT_MASK: u128 = 0x3 << 62;
    let bits = bits & !VERSION_MASK & !VARIANT_MASK | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_of_version_four() {
        assert_eq!(format_uuid(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(format_uuid(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }

    #[test]
    fn a_seed_repeats_its_sequence() {
        let ids = |seed| {
            let random = Random::new(seed);
            [random.uuid(), random.uuid()]
        };
        assert_eq!(ids(Some(7)), ids(Some(7)));
        assert_ne!(ids(Some(7)), ids(Some(8)));
        assert_ne!(ids(None), ids(None));
    }
}
