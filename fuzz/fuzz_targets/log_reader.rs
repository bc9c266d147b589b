//! The reader of logs. It reads any bytes without a fault, and an intact log unchanged. A log with
//! one damaged byte yields all records except those that the damage hits.

#![no_main]

use libfuzzer_sys::fuzz_target;

// Included as files: the store's crate would bring RocksDB along.
#[path = "../../crates/store-embedded/src/write_ahead_log/horizon.rs"]
#[allow(dead_code)]
mod horizon;
#[path = "../../crates/store-embedded/src/write_ahead_log/reader.rs"]
#[allow(dead_code)]
mod reader;

use horizon::Nonce;
use reader::LogRecord;

const NUMBER: u64 = 7;
const NONCE: Nonce = Nonce(0x0102_0304_0506_0708);
const BLOCK_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 11;
/// The types of whole, first, middle and last fragments in files that may be reused.
const TYPES: [u8; 4] = [5, 6, 7, 8];

fuzz_target!(|input: &[u8]| {
    check_any(input);
    let [position_high, position_low, flip, sizes @ ..] = input else { return };
    let (log, offsets) = write_log(sizes);
    let (records, damage) = read(&log);
    assert_eq!(damage, None);
    assert_eq!(records.iter().map(|record| record.offset).collect::<Vec<_>>(), offsets);
    if log.is_empty() || *flip == 0 {
        return;
    }
    let position = usize::from(u16::from_be_bytes([*position_high, *position_low])) % log.len();
    let mut damaged = log.clone();
    damaged[position] ^= flip;
    let hit = offsets.iter().rposition(|offset| *offset <= position as u64);
    let (mut found, _) = read(&damaged);
    // The caller judges where the damage is.
    found.iter_mut().for_each(|record| record.damage = None);
    let mut expected = records.clone();
    expected.remove(hit.expect("a log begins with a record"));
    // Padding at the end of a block belongs to no record, and a reader that sees the number of
    // another log takes it for the end.
    let is_prefix = records.starts_with(&found);
    assert!(
        found == expected || found == records || is_prefix,
        "byte {position}: {found:?}, {records:?}"
    );
});

/// The records of a log, and the first position after them that could not be read.
fn read(bytes: &[u8]) -> (Vec<LogRecord>, Option<u64>) {
    let mut records = Vec::new();
    let read = reader::read_from(bytes, NUMBER, NONCE, |record| records.push(record));
    (records, read.expect("bytes in memory can be read"))
}

fn check_any(bytes: &[u8]) {
    let (records, damage) = read(bytes);
    assert!(records.is_sorted_by(|one, other| one.offset < other.offset), "records go forward");
    let end = bytes.len() as u64;
    assert!(
        records.iter().all(|record| record.offset < end)
            && damage.is_none_or(|offset| offset < end)
    );
}

/// Writes a record for each byte, which gives its size, in RocksDB's format. Returns the offsets of
/// the records.
fn write_log(sizes: &[u8]) -> (Vec<u8>, Vec<u64>) {
    let (mut log, mut offsets) = (Vec::new(), Vec::new());
    for (number, size) in sizes.iter().take(40).enumerate() {
        // Some are larger than a block.
        let size = if size % 16 == 15 { usize::from(*size) * 300 } else { usize::from(*size) * 20 };
        let mut data = (1 + 2 * number as u64).to_le_bytes().to_vec();
        data.extend(2_u32.to_le_bytes());
        let horizon = horizon::encode(NONCE, number as u64);
        data.extend([3, horizon.len() as u8]);
        data.extend(horizon);
        data.extend(std::iter::repeat_n(*sizes.first().unwrap_or(&1), size));
        offsets.push(write_record(&mut log, &data));
    }
    (log, offsets)
}

fn write_record(log: &mut Vec<u8>, data: &[u8]) -> u64 {
    let mut offset = None;
    let mut rest = data;
    loop {
        let left = BLOCK_BYTES - log.len() % BLOCK_BYTES;
        if left < HEADER_BYTES {
            log.extend(std::iter::repeat_n(0, left));
            continue;
        }
        let (fragment, behind) = rest.split_at(rest.len().min(left - HEADER_BYTES));
        let is_first = offset.is_none();
        offset.get_or_insert(log.len() as u64);
        let kind = match (is_first, behind.is_empty()) {
            (true, true) => TYPES[0],
            (true, false) => TYPES[1],
            (false, false) => TYPES[2],
            (false, true) => TYPES[3],
        };
        let mut covered = vec![kind];
        covered.extend((NUMBER as u32).to_le_bytes());
        covered.extend(fragment);
        let checksum = crc32c::crc32c(&covered).rotate_right(15).wrapping_add(0xA282_EAD8);
        log.extend(checksum.to_le_bytes());
        log.extend((fragment.len() as u16).to_le_bytes());
        log.extend(covered);
        rest = behind;
        if rest.is_empty() {
            return offset.unwrap_or_default();
        }
    }
}
