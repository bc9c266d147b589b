//! Which unsynced changes are on disk when power fails.

/// Which name changes (creations, renames, deletions) survive, besides those whose directory was synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// None: a strict reading of POSIX.
    Synced,
    /// In each directory, all changes up to some moment. File systems keep the order of changes
    /// there, and RocksDB relies on it when it creates a manifest and then names it in `CURRENT`.
    Prefix,
    /// What a journal keeps: all changes up to some moment, which is not before the last sync of
    /// any file (ext4).
    Journaled,
    All,
}

/// Which changes of content survive, besides those that were synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    None,
    /// Each sector, and the file's length, is as it was at a moment of its own. So writes are partial,
    /// reordered and torn.
    Random,
    /// Like `Random`, but data that extends a file survives completely (ext4 with ordered data).
    Ordered,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survival {
    pub names: Names,
    pub data: Data,
    /// How much the disk writes atomically: 512 or 4096 bytes.
    pub sector_bytes: u64,
    /// The seed of all random choices.
    pub seed: u64,
}

impl Survival {
    /// Only what was synced.
    pub const SYNCED: Survival =
        Survival { names: Names::Synced, data: Data::None, sector_bytes: 512, seed: 0 };

    /// Everything, as if the system had written all of it back.
    pub const ALL: Survival =
        Survival { names: Names::All, data: Data::All, sector_bytes: 512, seed: 0 };

    /// A survival drawn from a seed. One in four is the strictest.
    pub fn draw(seed: u64) -> Survival {
        let dice = mixed(&[seed, 0x5eed]);
        let (names, data) = match dice % 8 {
            0 | 1 => (Names::Synced, Data::None),
            2 => (Names::Synced, Data::Random),
            3 => (Names::Prefix, Data::Random),
            4 => (Names::All, Data::Random),
            5 => (Names::Journaled, Data::Ordered),
            6 => (Names::Journaled, Data::None),
            _ => (Names::Prefix, Data::All),
        };
        let sector_bytes = if dice >> 8 & 1 == 0 { 512 } else { 4096 };
        Survival { names, data, sector_bytes, seed }
    }

    /// A number below `end`. Equal questions get equal answers.
    pub(crate) fn choose(&self, question: &[u64], end: usize) -> usize {
        let answer = mixed(&[&[self.seed], question].concat());
        (answer % end.max(1) as u64) as usize
    }
}

/// SplitMix64 over a sequence of numbers.
pub(crate) fn mixed(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |state, number| {
        let mut z = (state ^ number).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}
