//! The recorded events, in order.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use crate::disk::Disk;
use crate::image::Image;
use crate::survival::{Survival, mixed};

/// An open file of one process.
pub(crate) type Handle = (u32, u32);

/// One record. Paths are relative to the recorded directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A process starts.
    Start {
        process: u32,
    },
    Open {
        handle: Handle,
        path: String,
        is_created: bool,
        is_truncated: bool,
    },
    Write {
        handle: Handle,
        offset: u64,
        data: Vec<u8>,
    },
    Truncate {
        handle: Handle,
        length: u64,
    },
    /// The file has at least this length.
    Allocate {
        handle: Handle,
        length: u64,
    },
    SyncBegin {
        handle: Handle,
        number: u64,
    },
    SyncEnd {
        handle: Handle,
        number: u64,
    },
    SyncFailed {
        handle: Handle,
        number: u64,
    },
    Rename {
        from: String,
        to: String,
    },
    Link {
        from: String,
        to: String,
    },
    Unlink {
        path: String,
    },
    MakeDirectory {
        path: String,
    },
    RemoveDirectory {
        path: String,
    },
    /// What the process sent to others: its acknowledgements.
    Mark {
        data: Vec<u8>,
    },
}

#[derive(Debug, Clone, Default)]
pub struct Trace {
    pub events: Vec<Event>,
}

const HEADER_BYTES: usize = 40;

impl Trace {
    /// Reads a trace. Drops a last record that is cut off because the process was killed.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a trace.
    pub fn read(file: &Path) -> io::Result<Trace> {
        let bytes = fs::read(file)?;
        let mut events = Vec::new();
        let mut rest = &bytes[..];
        while let Some((record, behind)) = split_record(rest) {
            let event = parse(record);
            events.push(event.ok_or_else(|| io::Error::other("the trace holds no valid record"))?);
            rest = behind;
        }
        Ok(Trace { events })
    }
}

fn split_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    bytes.split_at_checked(4 + size)
}

fn parse(record: &[u8]) -> Option<Event> {
    let (head, rest) = record.split_at_checked(HEADER_BYTES)?;
    let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let u32_at =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    let (kind, flags) = (u16_at(4), u16_at(6));
    let handle = (u32_at(8), u32_at(12));
    let (offset, length) = (u64_at(16), u64_at(24));
    let (path, rest) = rest.split_at_checked(u32_at(32) as usize)?;
    let (other, data) = rest.split_at_checked(u32_at(36) as usize)?;
    let (path, other) =
        (String::from_utf8(path.to_vec()).ok()?, String::from_utf8(other.to_vec()).ok()?);
    let data = data.to_vec();
    Some(match kind {
        1 => Event::Start { process: handle.0 },
        2 => Event::Open { handle, path, is_created: flags & 1 != 0, is_truncated: flags & 2 != 0 },
        3 => Event::Write { handle, offset, data },
        4 => Event::Truncate { handle, length },
        5 => Event::Allocate { handle, length },
        6 => Event::SyncBegin { handle, number: offset },
        7 => Event::SyncEnd { handle, number: offset },
        8 => Event::SyncFailed { handle, number: offset },
        9 => Event::Rename { from: path, to: other },
        10 => Event::Link { from: path, to: other },
        11 => Event::Unlink { path },
        12 => Event::MakeDirectory { path },
        13 => Event::RemoveDirectory { path },
        14 => Event::Mark { data },
        _ => return None,
    })
}

/// A power cut: before the event with this number, with this survival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    pub before: usize,
    pub survival: Survival,
}

impl Event {
    /// Whether the event changes what must survive.
    fn decides(&self) -> bool {
        match self {
            Event::Mark { .. } | Event::SyncEnd { .. } | Event::Truncate { .. } => true,
            Event::Open { is_created, is_truncated, .. } => *is_created || *is_truncated,
            Event::Rename { .. } | Event::Link { .. } | Event::Unlink { .. } => true,
            Event::MakeDirectory { .. } | Event::RemoveDirectory { .. } => true,
            Event::Start { .. } | Event::Write { .. } | Event::Allocate { .. } => false,
            Event::SyncBegin { .. } | Event::SyncFailed { .. } => false,
        }
    }
}

impl Trace {
    /// Power cuts, in order. A third are drawn evenly. A third follow closely on events that decide
    /// durability (acknowledgements, ends of syncs, changes of names and lengths). A third follow a
    /// write to some file, however rarely that file is written.
    pub fn cuts(&self, count: usize, seed: u64) -> Vec<Cut> {
        let deciding: Vec<usize> = self.numbers_of(|event| event.decides()).collect();
        let mut written: BTreeMap<Handle, Vec<usize>> = BTreeMap::new();
        for number in self.numbers_of(|event| matches!(event, Event::Write { .. })) {
            let Event::Write { handle, .. } = &self.events[number] else { continue };
            written.entry(*handle).or_default().push(number);
        }
        let written: Vec<Vec<usize>> = written.into_values().collect();
        let draw = |number: u64| {
            let survival = Survival::draw(mixed(&[seed, number]));
            let any =
                |numbers: &[usize]| numbers.get(survival.choose(&[1], numbers.len())).copied();
            let after = match number % 3 {
                0 => None,
                1 => any(&deciding),
                _ => written.get(survival.choose(&[2], written.len())).and_then(|file| any(file)),
            };
            let before = match after {
                None => survival.choose(&[3], self.events.len() + 1),
                Some(number) => number + 1 + survival.choose(&[4], 3),
            };
            Cut { before: before.min(self.events.len()), survival }
        };
        let mut cuts: Vec<Cut> = (0..count as u64).map(draw).collect();
        cuts.sort_by_key(|cut| cut.before);
        cuts
    }

    fn numbers_of(&self, fits: impl Fn(&Event) -> bool) -> impl Iterator<Item = usize> {
        self.events
            .iter()
            .enumerate()
            .filter(move |(_, event)| fits(event))
            .map(|(number, _)| number)
    }

    /// Calls `visit` with the image that each cut leaves. The cuts must be in order.
    pub fn cut(&self, disk: Disk, cuts: &[Cut], mut visit: impl FnMut(&Cut, Image)) {
        let mut disk = disk;
        let mut done = 0;
        for cut in cuts {
            self.events[done..cut.before].iter().for_each(|event| disk.apply(event));
            done = cut.before;
            visit(cut, disk.after_power_cut(&cut.survival));
        }
    }

    /// The acknowledgements before a moment.
    pub fn marks(&self, before: usize) -> impl Iterator<Item = &[u8]> {
        self.events[..before].iter().filter_map(|event| match event {
            Event::Mark { data } => Some(&data[..]),
            _ => None,
        })
    }
}
