//! The content of one file: what was there, and every change since.

use crate::survival::{Data, Survival};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Pending,
    Durable,
    /// A sync of this change failed. The system may have dropped the data, so no later sync covers
    /// it.
    GivenUp,
}

#[derive(Debug, Clone)]
pub(crate) enum Change {
    Write { offset: u64, data: Vec<u8> },
    Truncate { length: u64 },
    Allocate { length: u64 },
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    base: Vec<u8>,
    changes: Vec<(Change, State)>,
}

impl Content {
    /// Content that is already on disk.
    pub fn durable(base: Vec<u8>) -> Content {
        Content { base, changes: Vec::new() }
    }

    pub fn add(&mut self, change: Change) {
        self.changes.push((change, State::Pending));
    }

    pub fn change_count(&self) -> usize {
        self.changes.len()
    }

    /// Marks the first `count` changes: they reached the disk, or the attempt failed.
    pub fn settle(&mut self, count: usize, state: State) {
        for (_, known) in &mut self.changes[..count] {
            if *known == State::Pending {
                *known = state;
            }
        }
    }

    /// What is on disk after a power cut. `file` distinguishes the files of one image.
    pub fn surviving(&self, survival: &Survival, file: u64) -> Vec<u8> {
        let count = self.changes.len();
        let is_durable = |(_, state): &(Change, State)| *state == State::Durable;
        let certain = self.changes.iter().rposition(is_durable).map_or(0, |last| last + 1);
        let sized = match survival.data {
            Data::None => certain,
            Data::All => count,
            Data::Random | Data::Ordered => {
                certain + survival.choose(&[file, u64::MAX], count - certain + 1)
            }
        };
        let certain_length = self.length_after(certain);
        let keeps = |number: usize, sector: u64| {
            let is_given_up = self.changes[number].1 == State::GivenUp;
            let limit = || certain + survival.choose(&[file, sector], count - certain + 1);
            match survival.data {
                Data::None => false,
                Data::All => true,
                _ if is_given_up => survival.choose(&[file, sector, number as u64], 2) == 0,
                Data::Ordered if sector * survival.sector_bytes >= certain_length => {
                    number < limit().max(sized)
                }
                Data::Random | Data::Ordered => number < limit(),
            }
        };
        let mut bytes = self.base.clone();
        for (number, (change, state)) in self.changes.iter().enumerate() {
            match state {
                State::Durable => change.apply(&mut bytes),
                _ => change
                    .apply_to(&mut bytes, survival.sector_bytes, |sector| keeps(number, sector)),
            }
        }
        bytes.resize(self.length_after(sized) as usize, 0);
        bytes
    }

    fn length_after(&self, count: usize) -> u64 {
        self.changes[..count].iter().fold(
            self.base.len() as u64,
            |length, (change, _)| match change {
                Change::Write { offset, data } => length.max(offset + data.len() as u64),
                Change::Truncate { length } => *length,
                Change::Allocate { length: least } => length.max(*least),
            },
        )
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        self.apply_to(bytes, u64::MAX, |_| true);
    }

    /// Applies the parts in the sectors that survive. Truncating zeroes the bytes past the new end:
    /// they read as zeros if the file grows again.
    fn apply_to(&self, bytes: &mut Vec<u8>, sector_bytes: u64, keeps: impl Fn(u64) -> bool) {
        match self {
            Change::Write { offset, data } => {
                let end = (*offset as usize) + data.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                for (sector, from, to) in sectors(*offset, end as u64, sector_bytes) {
                    if keeps(sector) {
                        let source = &data[from - *offset as usize..to - *offset as usize];
                        bytes[from..to].copy_from_slice(source);
                    }
                }
            }
            Change::Truncate { length } => {
                for (sector, from, to) in sectors(*length, bytes.len() as u64, sector_bytes) {
                    if keeps(sector) {
                        bytes[from..to].fill(0);
                    }
                }
            }
            Change::Allocate { .. } => {}
        }
    }
}

/// The sectors that a range touches, each with its part of the range.
fn sectors(from: u64, to: u64, sector_bytes: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let range = if from < to { from / sector_bytes..(to - 1) / sector_bytes + 1 } else { 0..0 };
    range.map(move |sector| {
        let begin = sector.saturating_mul(sector_bytes).max(from);
        let end = (sector + 1).saturating_mul(sector_bytes).min(to);
        (sector, begin as usize, end as usize)
    })
}
