//! Segments of the shipped log: commit groups in their order, chained by checksums.
//!
//! ```text
//! "zenobe-segment 1\n"
//! the generation         2 bytes of length, and its id
//! the segment's number   8 bytes; all numbers are big-endian
//! the checksum of the segment before it, or zeros   32 bytes
//! the number of groups   4 bytes
//! for each group         its first sequence number (8), its entries (4), its stamp (8), its length (4), its bytes
//! the SHA-256 of all that   32 bytes: the checksum of this segment
//! ```
//!
//! A [`Chain`] checks what one segment can't know: that none is missing, that none comes twice, and that
//! sequence numbers and stamps continue from one to the next.

use sha2::{Digest, Sha256};
use zenobe_store::Stamp;
use zenobe_store::shipping::LogGroup;

use crate::error::{BackupError, Result};
use crate::names::SegmentName;

const MAGIC: &[u8] = b"zenobe-segment 1\n";
const CHECKSUM_BYTES: usize = 32;

/// The SHA-256 at the end of a segment.
pub type Checksum = [u8; CHECKSUM_BYTES];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSegment {
    pub generation: String,
    /// Segments are numbered from 1.
    pub number: u64,
    /// The checksum of the segment before; zeros in the first.
    pub previous: Checksum,
    /// At least one.
    pub groups: Vec<LogGroup>,
}

impl LogSegment {
    pub fn name(&self) -> SegmentName {
        let first = self.groups.first().map_or(0, |group| group.first);
        let until = self.groups.last().map_or(Stamp::default(), |group| group.stamp);
        SegmentName::new(self.number, first, until)
    }

    /// The bytes of the segment, and its checksum.
    pub fn encode(&self) -> (Vec<u8>, Checksum) {
        let size = self.groups.iter().map(|group| group.bytes.len() + 24).sum::<usize>();
        let mut bytes = Vec::with_capacity(size + 200);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&(self.generation.len() as u16).to_be_bytes());
        bytes.extend_from_slice(self.generation.as_bytes());
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend_from_slice(&self.previous);
        bytes.extend_from_slice(&(self.groups.len() as u32).to_be_bytes());
        for group in &self.groups {
            bytes.extend_from_slice(&group.first.to_be_bytes());
            bytes.extend_from_slice(&group.entries.to_be_bytes());
            bytes.extend_from_slice(&group.stamp.to_bits().to_be_bytes());
            bytes.extend_from_slice(&(group.bytes.len() as u32).to_be_bytes());
            bytes.extend_from_slice(&group.bytes);
        }
        let checksum: Checksum = Sha256::digest(&bytes).into();
        bytes.extend_from_slice(&checksum);
        (bytes, checksum)
    }

    /// The segment in these bytes, and its checksum. `object` is where they were found.
    ///
    /// # Errors
    /// If they are anything but what [`LogSegment::encode`] wrote.
    pub fn decode(object: &str, bytes: &[u8]) -> Result<(LogSegment, Checksum)> {
        let damaged = |problem: &str| BackupError::damaged(object, problem);
        if !bytes.starts_with(MAGIC) {
            return Err(damaged("it is not a segment that this program can read"));
        }
        let (content, checksum) = bytes
            .split_last_chunk::<CHECKSUM_BYTES>()
            .ok_or_else(|| damaged("it has been cut off"))?;
        if Checksum::from(Sha256::digest(content)) != *checksum {
            return Err(damaged("its SHA-256 is another than it says; it was cut off or altered"));
        }
        // The checksum agrees, so what does not parse now was never a segment.
        let mut rest = Rest(&content[MAGIC.len()..]);
        let segment =
            rest.segment().filter(|segment| rest.0.is_empty() && !segment.groups.is_empty());
        segment.map(|segment| (segment, *checksum)).ok_or_else(|| damaged("it does not parse"))
    }
}

/// What is still to be read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*chunk)
    }

    fn slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let (slice, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(slice)
    }

    fn segment(&mut self) -> Option<LogSegment> {
        let length = u16::from_be_bytes(self.chunk()?);
        let generation = std::str::from_utf8(self.slice(length.into())?).ok()?.to_owned();
        let number = u64::from_be_bytes(self.chunk()?);
        let previous = self.chunk()?;
        let count = u32::from_be_bytes(self.chunk()?);
        // Not reserved: the count may be anything.
        let mut groups = Vec::new();
        for _ in 0..count {
            let first = u64::from_be_bytes(self.chunk()?);
            let entries = u32::from_be_bytes(self.chunk()?);
            let stamp = Stamp::from_bits(u64::from_be_bytes(self.chunk()?));
            let length = u32::from_be_bytes(self.chunk()?);
            let bytes = self.slice(length as usize)?.to_vec().into();
            groups.push(LogGroup { first, entries, stamp, bytes });
        }
        Some(LogSegment { generation, number, previous, groups })
    }
}

/// Segments of one generation in their order. What does not continue the chain is refused.
#[derive(Debug, Clone)]
pub struct Chain {
    generation: String,
    /// The last segment, its checksum, the sequence number after it, and its last stamp.
    last: Option<(u64, Checksum, u64, Stamp)>,
}

impl Chain {
    /// A chain that begins with any segment.
    pub fn new(generation: &str) -> Chain {
        Chain { generation: generation.to_owned(), last: None }
    }

    /// Adds a segment that was found at `object`.
    ///
    /// # Errors
    /// If it does not follow the segments before it.
    pub fn add(&mut self, object: &str, segment: &LogSegment, checksum: Checksum) -> Result<()> {
        let damaged = |problem: String| Err(BackupError::damaged(object, problem));
        let LogSegment { generation, number, previous, groups } = segment;
        if *generation != self.generation {
            return damaged(format!("it belongs to generation {generation}"));
        }
        let (mut next, mut newest) = match self.last {
            None => {
                if *number == 1 && *previous != Checksum::default() {
                    return damaged(
                        "it says that it is the first, and names one before".to_owned(),
                    );
                }
                (None, Stamp::default())
            }
            Some((last, expected, next, newest)) => {
                let following = last.checked_add(1);
                if following != Some(*number) {
                    let expected = following.unwrap_or(u64::MAX);
                    return damaged(format!("it is segment {number}; expected {expected}"));
                }
                if *previous != expected {
                    return damaged(format!("it does not continue segment {last} as it was found"));
                }
                (Some(next), newest)
            }
        };
        for group in groups {
            if next.is_some_and(|next| next != group.first) {
                let next = next.unwrap_or_default();
                return damaged(format!(
                    "sequence number {} follows, expected {next}",
                    group.first
                ));
            }
            if group.stamp <= newest || group.entries == 0 {
                return damaged(format!(
                    "the group with sequence number {} has no valid time",
                    group.first
                ));
            }
            (next, newest) = (Some(group.next()), group.stamp);
        }
        self.last = Some((*number, checksum, next.unwrap_or_default(), newest));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Segments of a generation, as a server would ship them. Each group has its number of entries and its bytes.
    fn segments(
        groups: &[(u32, Vec<u8>)],
        per_segment: usize,
    ) -> Vec<(LogSegment, Checksum, Vec<u8>)> {
        let mut previous = Checksum::default();
        let mut first = 10;
        let mut made = Vec::new();
        for (number, part) in (1..).zip(groups.chunks(per_segment)) {
            let groups = part.iter().map(|(entries, bytes)| {
                let stamp = Stamp::first_of_ms(1_000 + first);
                let group =
                    LogGroup { first, entries: *entries, stamp, bytes: bytes.clone().into() };
                first = group.next();
                group
            });
            let segment =
                LogSegment { generation: "g".into(), number, previous, groups: groups.collect() };
            let (bytes, checksum) = segment.encode();
            previous = checksum;
            made.push((segment, checksum, bytes));
        }
        made
    }

    fn groups() -> impl Strategy<Value = Vec<(u32, Vec<u8>)>> {
        prop::collection::vec((1..5_u32, prop::collection::vec(any::<u8>(), 0..50)), 1..20)
    }

    fn check(segments: &[&(LogSegment, Checksum, Vec<u8>)]) -> Result<()> {
        let mut chain = Chain::new("g");
        for (_, _, bytes) in segments {
            let (segment, checksum) = LogSegment::decode("s", bytes)?;
            chain.add(&segment.name().to_string(), &segment, checksum)?;
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_segment_is_read_as_it_was_written(groups in groups(), per_segment in 1..7_usize) {
            let made = segments(&groups, per_segment);
            for (segment, checksum, bytes) in &made {
                let decoded = LogSegment::decode("s", bytes).unwrap();
                prop_assert_eq!(&decoded, &(segment.clone(), *checksum));
            }
            check(&made.iter().collect::<Vec<_>>()).unwrap();
            // A restore begins anywhere.
            check(&made[made.len() / 2..].iter().collect::<Vec<_>>()).unwrap();
        }

        /// Cut off anywhere, or altered in any bit, it is refused, and the text names it.
        #[test]
        fn a_damaged_segment_is_refused(groups in groups(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let made = segments(&groups, 100);
            let bytes = &made[0].2;
            let at = at.index(bytes.len());
            let mut altered = bytes.clone();
            altered[at] ^= 1 << bit;
            for damaged in [&altered[..], &bytes[..at], &[&bytes[..], b"x"].concat()[..]] {
                let error = LogSegment::decode("bucket/s", damaged).unwrap_err().to_string();
                prop_assert!(error.starts_with("the backup is damaged: bucket/s: "), "{}", error);
            }
        }

        /// One that is missing, twice or misplaced is refused, and the one after it is named.
        #[test]
        fn a_broken_chain_is_refused(groups in prop::collection::vec((1..5_u32, Just(vec![1, 2])), 8..20), at in any::<prop::sample::Index>()) {
            let made = segments(&groups, 2);
            let all: Vec<_> = made.iter().collect();
            let at = 1 + at.index(all.len() - 2);
            let (mut missing, mut twice, mut swapped) = (all.clone(), all.clone(), all.clone());
            missing.remove(at);
            twice.insert(at, all[at]);
            swapped.swap(at, at + 1);
            for (broken, named) in [(missing, at + 1), (twice, at), (swapped, at + 1)] {
                let error = check(&broken).unwrap_err().to_string();
                let name = made[named].0.name().to_string();
                prop_assert!(error.contains(&name), "{} lacks {}", error, name);
            }
        }
    }

    /// A segment of another history, with the right number, is refused.
    #[test]
    fn another_history_does_not_continue_the_chain() {
        let one = segments(&[(1, vec![1]), (1, vec![2]), (1, vec![3])], 1);
        let other = segments(&[(1, vec![9]), (1, vec![2]), (1, vec![3])], 1);
        let error = check(&[&one[0], &other[1]]).unwrap_err().to_string();
        assert!(error.contains("does not continue segment 1"), "{error}");
        let mut stray = one[1].0.clone();
        stray.generation = "h".into();
        let (bytes, checksum) = stray.encode();
        let error = check(&[&one[0], &(stray, checksum, bytes)]).unwrap_err().to_string();
        assert!(error.contains("belongs to generation h"), "{error}");
    }

    /// Numbers and stamps are checked by themselves too, not only by checksums.
    #[test]
    fn numbers_and_stamps_go_on() {
        let made = segments(&[(2, vec![1]), (2, vec![2])], 1);
        for change in [
            |group: &mut LogGroup| group.first += 1,
            |group: &mut LogGroup| group.first -= 1,
            |group: &mut LogGroup| group.stamp = Stamp::first_of_ms(5),
            |group: &mut LogGroup| group.entries = 0,
        ] {
            let mut wrong = made[1].0.clone();
            change(&mut wrong.groups[0]);
            let (bytes, checksum) = wrong.encode();
            check(&[&made[0], &(wrong, checksum, bytes)]).unwrap_err();
        }
    }
}
