//! Reads the records of a log file, past those that are damaged.
//!
//! A log consists of blocks of 32 KiB, a block of fragments, a record of one or more fragments. A fragment
//! has a header: a masked CRC-32C of all that follows it (4 bytes), the length of its data (2), its type (1),
//! and, in files that may be reused, the low half of the log's number (4). All integers are little-endian.
//! No fragment crosses the end of a block. See `db/log_format.h` in RocksDB.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::horizon::{self, Nonce, WRITE_HEADER_BYTES, WRITE_PREFIX_BYTES};

pub(super) const BLOCK_BYTES: usize = 32 << 10;
pub(super) const HEADER_BYTES: usize = 7;
const REUSABLE_HEADER_BYTES: usize = HEADER_BYTES + 4;

/// An intact record: one RocksDB write that this store has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogRecord {
    /// Where its first fragment begins in the file.
    pub offset: u64,
    /// The first place after the record before it that could not be read, if there is one.
    pub damage: Option<u64>,
    /// The sequence number of its first entry.
    pub sequence: u64,
    pub entries: u32,
    pub horizon: u64,
}

/// Calls `visit` with each intact record of a log, in the order of the file. Returns the first place after the
/// last of them that could not be read, if there is one.
pub(super) fn read_records(
    path: &Path,
    number: u64,
    nonce: Nonce,
    visit: impl FnMut(LogRecord),
) -> io::Result<Option<u64>> {
    read_from(File::open(path)?, number, nonce, visit)
}

/// As [`read_records`], of a log that has been opened.
pub(super) fn read_from(
    mut file: impl Read,
    number: u64,
    nonce: Nonce,
    mut visit: impl FnMut(LogRecord),
) -> io::Result<Option<u64>> {
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    let mut reader = LogReader {
        number,
        nonce,
        block_offset: 0,
        damage: None,
        is_at_beginning: true,
        unfinished: None,
    };
    loop {
        block.clear();
        let read = (&mut file).take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
        if !reader.read_block(&block, &mut visit) || read < BLOCK_BYTES {
            return Ok(reader.unfinished.map(|record| record.offset).or(reader.damage));
        }
        reader.block_offset += BLOCK_BYTES as u64;
    }
}

struct LogReader {
    number: u64,
    nonce: Nonce,
    block_offset: u64,
    damage: Option<u64>,
    /// Whether no record has been met yet.
    is_at_beginning: bool,
    /// The beginning of a record whose last fragment has not been met yet.
    unfinished: Option<Unfinished>,
}

struct Unfinished {
    offset: u64,
    /// The record's first bytes; the others are not looked at.
    prefix: Vec<u8>,
}

impl LogReader {
    /// Returns whether the log may continue after this block.
    fn read_block(&mut self, block: &[u8], visit: &mut impl FnMut(LogRecord)) -> bool {
        let mut position = 0;
        // A fragment that was found by searching may lie inside a value.
        let mut is_found = false;
        while block.len() - position >= HEADER_BYTES {
            match parse_fragment(&block[position..]) {
                Some(fragment) if fragment.is_of_other_log(self.number) && !is_found => {
                    return false;
                }
                Some(fragment) if !fragment.is_of_other_log(self.number) => {
                    let offset = self.block_offset + position as u64;
                    self.take(&fragment, offset).into_iter().for_each(&mut *visit);
                    position += fragment.size_bytes;
                }
                None if is_padding(&block[position..]) => return true,
                Some(_) | None => {
                    is_found = true;
                    self.note_damage(self.block_offset + position as u64);
                    match find_fragment(block, position + 1, self.number) {
                        Some(found) => position = found,
                        None => return true,
                    }
                }
            }
        }
        true
    }

    fn note_damage(&mut self, offset: u64) {
        // A record that a damaged fragment interrupts is damaged from its beginning.
        let offset = self.unfinished.take().map_or(offset, |record| record.offset);
        self.damage.get_or_insert(offset);
    }

    /// Returns the record that the fragment completes.
    fn take(&mut self, fragment: &Fragment<'_>, offset: u64) -> Option<LogRecord> {
        let is_expected = match fragment.part {
            Part::Other => return None,
            Part::Full | Part::First => self.unfinished.is_none(),
            Part::Middle | Part::Last => self.unfinished.is_some(),
        };
        if !is_expected {
            self.note_damage(offset);
        }
        match fragment.part {
            Part::Full | Part::First => {
                self.unfinished = Some(Unfinished { offset, prefix: Vec::new() });
            }
            Part::Middle | Part::Last | Part::Other => {}
        }
        let record = self.unfinished.as_mut()?;
        let missing = WRITE_PREFIX_BYTES - record.prefix.len();
        record.prefix.extend(fragment.data.iter().take(missing));
        match fragment.part {
            Part::Full | Part::Last => self.finish(),
            Part::First | Part::Middle | Part::Other => None,
        }
    }

    fn finish(&mut self) -> Option<LogRecord> {
        let Unfinished { offset, prefix } = self.unfinished.take()?;
        let parts = prefix.split_first_chunk::<WRITE_HEADER_BYTES>();
        // After a torn log, RocksDB begins the next log with an empty write of its own. It counts only there: no client
        // decides what a log begins with.
        let is_own = self.is_at_beginning && self.damage.is_none();
        let parts = parts.and_then(|(header, entries)| match entries {
            [] if is_own => Some((header, 0)),
            _ => Some((header, horizon::decode(entries, self.nonce)?)),
        });
        self.is_at_beginning = false;
        let Some((header, horizon)) = parts else {
            self.note_damage(offset);
            return None;
        };
        let [s0, s1, s2, s3, s4, s5, s6, s7, count @ ..] = *header;
        Some(LogRecord {
            offset,
            damage: self.damage.take(),
            sequence: u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
            entries: u32::from_le_bytes(count),
            horizon,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Full,
    First,
    Middle,
    Last,
    /// Something about the log itself.
    Other,
}

pub(super) struct Fragment<'a> {
    pub part: Part,
    /// The low half of the number of the log that it was written to, if it says so.
    log_number: Option<u32>,
    data: &'a [u8],
    /// Header and data.
    pub size_bytes: usize,
}

impl Fragment<'_> {
    /// What is left in a reused file belongs to the log that it held before.
    fn is_of_other_log(&self, number: u64) -> bool {
        self.log_number.is_some_and(|found| found != number as u32)
    }
}

/// The fragment at the beginning of these bytes, if it is intact.
pub(super) fn parse_fragment(bytes: &[u8]) -> Option<Fragment<'_>> {
    let (&[c0, c1, c2, c3, length_low, length_high, kind], rest) =
        bytes.split_first_chunk::<HEADER_BYTES>()?;
    let (part, is_reusable) = part_of(kind)?;
    let header_bytes = if is_reusable { REUSABLE_HEADER_BYTES } else { HEADER_BYTES };
    let size_bytes = header_bytes + usize::from(u16::from_le_bytes([length_low, length_high]));
    // From the type on, everything is covered by the checksum.
    let covered = bytes.get(HEADER_BYTES - 1..size_bytes)?;
    if mask(crc32c::crc32c(covered)) != u32::from_le_bytes([c0, c1, c2, c3]) {
        return None;
    }
    let log_number = rest.first_chunk().filter(|_| is_reusable).map(|it| u32::from_le_bytes(*it));
    Some(Fragment { part, log_number, data: &bytes[header_bytes..size_bytes], size_bytes })
}

/// What a fragment's type says, and whether its header holds the log's number.
fn part_of(kind: u8) -> Option<(Part, bool)> {
    Some(match kind {
        1 => (Part::Full, false),
        2 => (Part::First, false),
        3 => (Part::Middle, false),
        4 => (Part::Last, false),
        5 => (Part::Full, true),
        6 => (Part::First, true),
        7 => (Part::Middle, true),
        8 => (Part::Last, true),
        // The compression of the log, the sizes of timestamps, the log before this one.
        9 | 10 | 130 => (Part::Other, false),
        11 | 131 => (Part::Other, true),
        _ => return None,
    })
}

/// RocksDB stores checksums masked, so that the checksum of data that holds checksums is not degenerate.
fn mask(checksum: u32) -> u32 {
    checksum.rotate_right(15).wrapping_add(0xA282_EAD8)
}

/// The end of a block that had no room for another header.
fn is_padding(rest: &[u8]) -> bool {
    rest.len() < REUSABLE_HEADER_BYTES && rest.iter().all(|byte| *byte == 0)
}

/// Finds the next fragment after a damaged one in the same block. Its length is not trusted, so every
/// position is tried; only fragments that name this log count.
fn find_fragment(block: &[u8], from: usize, number: u64) -> Option<usize> {
    let names_log = |fragment: Fragment<'_>| fragment.log_number == Some(number as u32);
    (from..block.len()).find(|position| parse_fragment(&block[*position..]).is_some_and(names_log))
}

#[cfg(test)]
mod tests {
    use super::super::batch_with_horizon;
    use super::super::horizon::Nonce;
    use super::{BLOCK_BYTES, LogRecord, read_records};
    use crate::options::{Options, rocksdb_options};
    use rocksdb::DB;
    use std::fs;
    use std::path::{Path, PathBuf};
    use zenobe_store::conformance::Random;

    const NONCE: Nonce = Nonce(0x0123_4567_89AB_CDEF);

    fn read(path: &Path) -> Vec<LogRecord> {
        let number = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        let mut records = Vec::new();
        read_records(path, number, NONCE, |record| records.push(record)).unwrap();
        records
    }

    fn newest_log(directory: &Path) -> PathBuf {
        let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let logs = paths.filter(|path| path.extension().is_some_and(|name| name == "log"));
        logs.max().expect("a log")
    }

    fn open(directory: &Path) -> DB {
        let mut options = rocksdb_options(&Options::default());
        options.create_if_missing(true);
        DB::open(&options, directory).unwrap()
    }

    /// Writes values of these sizes, each with its place as the horizon.
    fn write(rocks: &DB, sizes: &[usize], random: &mut Random) {
        for (place, size) in sizes.iter().enumerate() {
            let mut write = batch_with_horizon(NONCE, place as u64, *size);
            write.put("k", random.bytes(*size));
            write.delete("other");
            rocks.write(write).unwrap();
        }
        rocks.flush_wal(false).unwrap();
    }

    /// Sizes on both sides of everything that happens at the end of a block.
    fn sizes() -> Vec<usize> {
        let mut sizes: Vec<usize> = (0..60).map(|extra| BLOCK_BYTES - 90 + extra).collect();
        sizes.extend([0, 1, 100, 3 * BLOCK_BYTES, 10, 20, 30, 100_000, 5]);
        sizes
    }

    #[test]
    fn reads_what_rocksdb_writes() {
        let directory = tempfile::tempdir().unwrap();
        let rocks = open(directory.path());
        let first = rocks.latest_sequence_number() + 1;
        write(&rocks, &sizes(), &mut Random::new(1));
        // A write of the horizon alone.
        rocks.write(batch_with_horizon(NONCE, 12_345, 0)).unwrap();
        rocks.flush_wal(false).unwrap();
        let mut records = read(&newest_log(directory.path()));
        let alone = records.pop().unwrap();
        assert_eq!((alone.entries, alone.horizon), (0, 12_345));
        assert_eq!(alone.sequence, rocks.latest_sequence_number() + 1);
        assert_eq!(records.len(), sizes().len());
        for (place, record) in (0..).zip(&records) {
            let found = (record.sequence, record.entries, record.horizon, record.damage);
            assert_eq!(found, (first + 2 * place, 2, place, None));
        }
    }

    /// Damage costs the record that it hits, and no other.
    #[test]
    fn reads_on_after_damage() {
        let mut random = Random::announced("reads_on_after_damage");
        let directory = tempfile::tempdir().unwrap();
        let rocks = open(directory.path());
        let sizes: Vec<usize> = (0..300).map(|place| (place * 37) % 900).collect();
        write(&rocks, &sizes, &mut random);
        let original = newest_log(directory.path());
        let (content, records) = (fs::read(&original).unwrap(), read(&original));
        let damaged = directory.path().join("damaged").join(original.file_name().unwrap());
        fs::create_dir(damaged.parent().unwrap()).unwrap();
        for _ in 0..200 {
            let mut content = content.clone();
            let position = random.below(content.len());
            content[position] ^= 1 << random.below(8);
            fs::write(&damaged, content).unwrap();
            let hit = records.iter().rposition(|record| record.offset <= position as u64).unwrap();
            let mut expected = records.clone();
            expected.remove(hit);
            let mut found = read(&damaged);
            for record in &mut found {
                if let Some(offset) = record.damage.take() {
                    assert_eq!(offset, records[hit].offset, "byte {position}");
                }
            }
            // What fills up a block belongs to no record.
            assert!(found == expected || found == records, "byte {position}");
            assert!(found == expected || position % BLOCK_BYTES > BLOCK_BYTES - 11);
        }
    }

    /// The remains of an older log end a reused file.
    #[test]
    fn ends_at_another_log() {
        let directory = tempfile::tempdir().unwrap();
        let rocks = open(directory.path());
        let mut random = Random::new(3);
        let mut reused = 0;
        for round in 0..8 {
            write(&rocks, &[200_000 >> round; 9], &mut random);
            let path = newest_log(directory.path());
            let records = read(&path);
            assert_eq!(records.len(), 9, "round {round}");
            let end = records.last().unwrap().offset + (200_000 >> round) * 2;
            reused += u32::from(fs::metadata(&path).unwrap().len() > end);
            rocks.flush().unwrap();
        }
        assert!(reused > 0, "no file was reused");
    }
}
