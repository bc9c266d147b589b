//! The names of snapshots, generations and segments.

use zenobe_store::Stamp;

/// A new id of a snapshot or a generation: its time in milliseconds, as AWS's backups have it, and something random.
pub fn new_id(at_ms: u64) -> String {
    // Without randomness, ids of different milliseconds still differ.
    let random = getrandom::u32().unwrap_or_default();
    format!("{at_ms:014}-{random:08x}")
}

/// The time in an id, or `None` if it is not one.
pub fn time_of_id(id: &str) -> Option<u64> {
    let (time, random) = id.split_once('-')?;
    let is_id = time.len() == 14
        && random.len() == 8
        && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { time.parse().ok() } else { None }
}

/// What the name of a segment says of it. Its content says the same, and more.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentName {
    /// From 1 on, without a gap.
    pub number: u64,
    /// The first sequence number in it.
    pub first: u64,
    /// The millisecond of its last group.
    pub until_ms: u64,
}

impl SegmentName {
    pub fn new(number: u64, first: u64, until: Stamp) -> SegmentName {
        SegmentName { number, first, until_ms: until.at_ms() }
    }

    pub fn parse(name: &str) -> Option<SegmentName> {
        let mut parts = name.split('-');
        let number = parts.next().filter(|part| part.len() == 12)?.parse().ok()?;
        let first = parts.next().filter(|part| part.len() == 16)?;
        let first = u64::from_str_radix(first, 16).ok()?;
        let until_ms = parts.next().filter(|part| part.len() == 14)?.parse().ok()?;
        parts.next().is_none().then_some(SegmentName { number, first, until_ms })
    }
}

impl std::fmt::Display for SegmentName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:012}-{:016x}-{:014}", self.number, self.first, self.until_ms)
    }
}

pub(crate) const SNAPSHOTS: &str = "snapshots/";
pub(crate) const SEGMENTS: &str = "segments/";

pub(crate) fn manifest_key(snapshot: &str) -> String {
    format!("{SNAPSHOTS}{snapshot}/manifest")
}

pub(crate) fn started_key(snapshot: &str) -> String {
    format!("{SNAPSHOTS}{snapshot}/started")
}

pub(crate) fn file_key(snapshot: &str, file: &str) -> String {
    format!("{SNAPSHOTS}{snapshot}/files/{file}")
}

pub(crate) fn segment_key(generation: &str, segment: &SegmentName) -> String {
    format!("{SEGMENTS}{generation}/{segment}")
}

pub(crate) fn head_key(generation: &str) -> String {
    format!("{SEGMENTS}{generation}/head")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let id = new_id(1_794_816_000_123);
        assert!(id.starts_with("01794816000123-"), "{id}");
        assert_eq!(time_of_id(&id), Some(1_794_816_000_123));
        for other in ["", "x", "123-12345678", "01794816000123-1234567x", "started"] {
            assert_eq!(time_of_id(other), None, "{other}");
        }
        let name = SegmentName::new(7, 0xABC, Stamp::last_of_ms(1_794_816_000_123));
        assert_eq!(name.to_string(), "000000000007-0000000000000abc-01794816000123");
        assert_eq!(SegmentName::parse(&name.to_string()), Some(name));
        for other in ["", "head", "000000000007-0000000000000abc", "7-abc-1"] {
            assert_eq!(SegmentName::parse(other), None, "{other}");
        }
    }
}
