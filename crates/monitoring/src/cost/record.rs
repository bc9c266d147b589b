//! The row of a table's traffic in one hour, as one recorder has seen it.
//!
//! | key | fields |
//! |---|---|
//! | `'t' table 0 hour recorder` | `entries`: requests, units and items by index, operation and pattern; `minutes`: half units of the table and of each global index in the 60 minutes of the hour |
//! | `'r' recorder` | `from`, `until`: the first and the last minute in which the recorder ran |
//!
//! Hours and minutes are counted from the epoch. Table names have no zero byte, so the rows of a table lie
//! together, in the order of time. Reads of streams belong to no table: their rows have an empty name.

use std::collections::BTreeMap;
use std::ops::Range;

use zenobe_api::Operation;
use zenobe_engine::error::{Error, Result};
use zenobe_engine::row::Fields;
use zenobe_engine::schema::Namespace;
use zenobe_value::Attributes;

use crate::traffic::{Pattern, TrafficCounts};

pub(super) const MINUTES_PER_HOUR: usize = 60;

/// The namespace of rows that are about a recorder and not about anybody's tables.
pub(super) fn runs_namespace() -> Namespace {
    Namespace { account: String::new(), region: String::new() }
}

pub(super) fn run_key(recorder: &str) -> Vec<u8> {
    [b"r", recorder.as_bytes()].concat()
}

/// The keys of all runs.
pub(super) fn run_keys() -> Range<Vec<u8>> {
    b"r".to_vec()..b"s".to_vec()
}

pub(super) fn hour_key(table: &str, hour: u64, recorder: &str) -> Vec<u8> {
    [&hour_keys(table, hour..u64::MAX).start[..], recorder.as_bytes()].concat()
}

/// The keys of a table's rows in a range of hours.
pub(super) fn hour_keys(table: &str, hours: Range<u64>) -> Range<Vec<u8>> {
    let key = |hour: u64| {
        let hour = u32::try_from(hour).unwrap_or(u32::MAX);
        [b"t", table.as_bytes(), b"\0", &hour.to_be_bytes()].concat()
    };
    key(hours.start)..key(hours.end)
}

/// The keys of the rows of all tables whose names are after this one.
pub(super) fn keys_after(table: Option<&str>) -> Range<Vec<u8>> {
    let start = match table {
        None => b"t".to_vec(),
        Some(table) => [b"t", table.as_bytes(), b"\x01"].concat(),
    };
    start..b"u".to_vec()
}

/// The table of a row's key.
pub(super) fn table_of(key: &[u8]) -> Option<&str> {
    let name = key.strip_prefix(b"t")?;
    let end = name.iter().position(|byte| *byte == 0)?;
    str::from_utf8(&name[..end]).ok()
}

/// The hour of a row's key.
pub(super) fn hour_of(key: &[u8]) -> Option<u64> {
    let start = 1 + table_of(key)?.len() + 1;
    let hour = key.get(start..start + 4)?;
    Some(u32::from_be_bytes(hour.try_into().ok()?).into())
}

/// The first and the last minute in which a recorder ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub from: u64,
    pub until: u64,
}

impl Run {
    pub fn encode(self) -> Attributes {
        let mut fields = Fields::default();
        fields.number("from", self.from);
        fields.number("until", self.until);
        fields.0
    }

    pub fn decode(row: Attributes) -> Result<Run> {
        let mut fields = Fields(row);
        Ok(Run { from: fields.take_number("from")?, until: fields.take_number("until")? })
    }
}

/// What identifies a kind of request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryKey {
    /// The global index.
    pub index: Option<String>,
    pub operation: Operation,
    pub pattern: Pattern,
}

/// What requests of one kind did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryCounts {
    pub requests: u64,
    pub read_halves: u64,
    pub write_halves: u64,
    pub returned_items: u64,
}

impl EntryCounts {
    pub fn of(counts: &TrafficCounts) -> EntryCounts {
        let TrafficCounts { requests, read_halves, write_halves, returned_items, .. } = *counts;
        EntryCounts { requests, read_halves, write_halves, returned_items }
    }

    pub fn add(&mut self, other: &EntryCounts) {
        self.requests += other.requests;
        self.read_halves += other.read_halves;
        self.write_halves += other.write_halves;
        self.returned_items += other.returned_items;
    }
}

/// Read and written half units in each minute of an hour.
pub type HourUse = [[u64; 2]; MINUTES_PER_HOUR];

/// A table's traffic in one hour.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HourRecord {
    pub entries: BTreeMap<EntryKey, EntryCounts>,
    /// By global index; `None` is the table.
    pub minutes: BTreeMap<Option<String>, Box<HourUse>>,
}

/// Further kinds of requests of a table are summed: a table has 20 global indexes, and no client needs
/// more than a few patterns of each.
const ENTRIES_MAX: usize = 1_000;

impl HourRecord {
    pub fn add(&mut self, key: EntryKey, minute: usize, counts: &EntryCounts) {
        let used = [counts.read_halves, counts.write_halves];
        if used != [0, 0] {
            let minutes = self.minutes.entry(key.index.clone());
            let minutes = minutes.or_insert_with(|| Box::new([[0; 2]; MINUTES_PER_HOUR]));
            let sums = &mut minutes[minute % MINUTES_PER_HOUR];
            *sums = [sums[0] + used[0], sums[1] + used[1]];
        }
        let has_room = self.entries.len() < ENTRIES_MAX || self.entries.contains_key(&key);
        let key = match has_room {
            true => key,
            false => EntryKey { pattern: Pattern::Other, ..key },
        };
        self.entries.entry(key).or_default().add(counts);
    }

    pub fn encode(&self) -> Attributes {
        let entry = |(key, counts): (&EntryKey, &EntryCounts)| {
            let mut fields = Fields::default();
            fields.optional_text("index", key.index.as_deref());
            fields.text("operation", key.operation.name());
            fields.text("pattern", &key.pattern.to_string());
            for (name, count) in counts_fields(counts) {
                fields.optional_number(name, (count > 0).then_some(count));
            }
            fields.0
        };
        let minutes = |(index, used): (&Option<String>, &HourUse)| {
            let mut fields = Fields::default();
            fields.optional_text("index", index.as_deref());
            let flat: Vec<u64> = used.iter().flatten().copied().collect();
            fields.bytes("used", &varints(&flat));
            fields.0
        };
        let mut fields = Fields::default();
        fields.list("entries", self.entries.iter().map(entry));
        let by_index = self.minutes.iter().map(|(index, used)| (index, &**used));
        fields.list("minutes", by_index.map(minutes));
        fields.0
    }

    pub fn decode(row: Attributes) -> Result<HourRecord> {
        let mut fields = Fields(row);
        let entries = fields.take_list("entries", decode_entry)?.into_iter().collect();
        let minutes = fields.take_list("minutes", decode_minutes)?.into_iter().collect();
        Ok(HourRecord { entries, minutes })
    }
}

fn decode_entry(row: Attributes) -> Result<(EntryKey, EntryCounts)> {
    let mut fields = Fields(row);
    let (operation, pattern) = (fields.take_text("operation")?, fields.take_text("pattern")?);
    // A later version may know more of both.
    let (Some(operation), Ok(pattern)) = (Operation::from_name(&operation), pattern.parse()) else {
        return Err(corrupt("an operation or pattern"));
    };
    let key = EntryKey { index: fields.take_optional_text("index")?, operation, pattern };
    // A missing number is zero.
    let mut count = |name| fields.take_optional_number(name).map(Option::unwrap_or_default);
    let counts = EntryCounts {
        requests: count("requests")?,
        read_halves: count("read")?,
        write_halves: count("written")?,
        returned_items: count("returned")?,
    };
    Ok((key, counts))
}

fn decode_minutes(row: Attributes) -> Result<(Option<String>, Box<HourUse>)> {
    let mut fields = Fields(row);
    let flat = from_varints(&fields.take_bytes("used")?);
    let flat = flat.filter(|flat| flat.len() == 2 * MINUTES_PER_HOUR);
    let flat = flat.ok_or_else(|| corrupt("the numbers of minutes"))?;
    let mut used = Box::new([[0; 2]; MINUTES_PER_HOUR]);
    for (minute, pair) in used.iter_mut().zip(flat.chunks_exact(2)) {
        *minute = [pair[0], pair[1]];
    }
    Ok((fields.take_optional_text("index")?, used))
}

fn counts_fields(counts: &EntryCounts) -> [(&'static str, u64); 4] {
    [
        ("requests", counts.requests),
        ("read", counts.read_halves),
        ("written", counts.write_halves),
        ("returned", counts.returned_items),
    ]
}

fn corrupt(what: &str) -> Error {
    Error::Corrupt { detail: format!("the row of an hour's traffic: {what}") }
}

/// Seven bits per byte, lowest first; most minutes of most tables are idle.
fn varints(numbers: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.len());
    for number in numbers {
        let mut rest = *number;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    bytes
}

fn from_varints(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    let (mut number, mut shift) = (0_u64, 0);
    for byte in bytes {
        let bits = u64::from(byte & 0x7f);
        number |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
        match byte & 0x80 {
            0 => {
                numbers.push(number);
                (number, shift) = (0, 0);
            }
            _ => shift += 7,
        }
    }
    (shift == 0).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use zenobe_value::AttributeValue;

    use super::*;

    #[test]
    fn a_record_survives_being_stored() {
        let mut record = HourRecord::default();
        let key = |index: Option<&str>, operation| EntryKey {
            index: index.map(str::to_owned),
            operation,
            pattern: Pattern::Write,
        };
        let counts = EntryCounts { requests: 1, write_halves: 300, ..EntryCounts::default() };
        record.add(key(None, Operation::PutItem), 59, &counts);
        record.add(key(None, Operation::PutItem), 59, &counts);
        record.add(key(Some("by-owner"), Operation::UpdateItem), 0, &counts);
        let failed = EntryCounts { requests: 4, ..EntryCounts::default() };
        record.add(key(None, Operation::DeleteItem), 3, &failed);
        assert_eq!(HourRecord::decode(record.encode()).unwrap(), record);
        assert_eq!(record.minutes[&None][59], [0, 600]);
        assert_eq!(record.entries[&key(None, Operation::PutItem)].requests, 2);
        let run = Run { from: 29_000_000, until: 29_000_007 };
        assert_eq!(Run::decode(run.encode()).unwrap(), run);
    }

    #[test]
    fn what_does_not_decode_is_an_error() {
        assert!(HourRecord::decode(Attributes::new()).is_err());
        let mut fields = HourRecord::default().encode();
        let mut minutes = Attributes::new();
        minutes.insert("used".into(), AttributeValue::B(vec![1, 2, 3]));
        fields.insert("minutes".into(), AttributeValue::L(vec![AttributeValue::M(minutes)]));
        assert!(HourRecord::decode(fields).is_err());
    }

    #[test]
    fn numbers_of_all_sizes_survive() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        assert_eq!(from_varints(&varints(&numbers)).unwrap(), numbers);
        assert_eq!(from_varints(&[0x80]), None);
        assert_eq!(from_varints(&[0xff; 11]), None);
    }

    #[test]
    fn keys_lie_by_table_and_time() {
        let key = hour_key("Orders", 480_000, "node");
        assert_eq!((table_of(&key), hour_of(&key)), (Some("Orders"), Some(480_000)));
        assert!(hour_keys("Orders", 480_000..480_001).contains(&key));
        assert!(!hour_keys("Orders", 479_000..480_000).contains(&key));
        assert!(!hour_keys("Order", 0..u64::MAX).contains(&key));
        assert!(keys_after(None).contains(&key) && keys_after(Some("Order")).contains(&key));
        assert!(!keys_after(Some("Orders")).contains(&key));
        // A name that begins with another one comes after it, and so does its row.
        assert!(keys_after(Some("Orders")).contains(&hour_key("Orders-2", 1, "node")));
        assert!(keys_after(None).contains(&hour_key("", 1, "node")));
    }

    #[test]
    fn a_record_is_bounded() {
        let mut record = HourRecord::default();
        let counts = EntryCounts { requests: 1, read_halves: 1, ..EntryCounts::default() };
        for number in 0..5_000 {
            let index = Some(format!("index-{}", number % 60));
            let operation = Operation::ALL[number % Operation::ALL.len()];
            let pattern = Pattern::all().nth(number % 48).unwrap();
            record.add(EntryKey { index, operation, pattern }, number, &counts);
        }
        let other = 60 * Operation::ALL.len();
        assert!(record.entries.len() <= ENTRIES_MAX + other, "{}", record.entries.len());
        let halves: u64 = record.entries.values().map(|counts| counts.read_halves).sum();
        assert_eq!(halves, 5_000);
    }
}
