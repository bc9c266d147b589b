//! A workload whose every state can be checked: whatever is on disk must be the outcome of a prefix of what
//! each writer did, with nothing torn, lost or made up.
//!
//! Each writer numbers its steps. A step writes three rows, the writer's last number, an entry of the
//! common log and a common counter in one batch, and now and then trims the writer's oldest rows by range.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use zenobe_store::conformance::block_on;
use zenobe_store::{
    Batch, Decision, Direction, Key, KeyRange, Reader, Result, Store, Value, WriteSet,
    decode_counter, decode_log_entry,
};

pub const WRITERS: u64 = 4;
const PARTS: [&str; 3] = ["a", "b", "c"];
/// How many steps lie between two trims, which leave only the newest rows.
const TRIM_EVERY: u64 = 40;
const TRIM_KEEPS: u64 = 25;

/// Makes a writer's next step, and answers with its number once it is acknowledged.
pub fn step(store: &dyn Store, writer: u64) -> Result<u64> {
    let keys = [Key::from(format!("last/{writer}"))];
    let mut number = 0;
    let mut decide = |reads: &[Option<Value>]| {
        number = parse(reads[0].as_deref()) + 1;
        Decision::Commit(batch(writer, number))
    };
    block_on(store.write(WriteSet { guards: &[], keys: &keys }, &mut decide))?;
    Ok(number)
}

fn batch(writer: u64, number: u64) -> Batch {
    let mut batch = Batch::new();
    if number.is_multiple_of(TRIM_EVERY) {
        let oldest = number - TRIM_KEEPS;
        batch.delete_range(KeyRange::new(format!("row/{writer}/"), row(writer, oldest, "")));
        batch.put(format!("oldest/{writer}"), oldest.to_string());
    }
    for part in PARTS {
        batch.put(row(writer, number, part), value(writer, number));
    }
    batch.put(format!("last/{writer}"), number.to_string());
    batch.append("log/", 0, format!("{writer} {number}"));
    batch.add("count", 1);
    batch
}

fn row(writer: u64, number: u64, part: &str) -> String {
    format!("row/{writer}/{number:08}/{part}")
}

/// Large enough, and different enough, that damage anywhere in it is noticed.
fn value(writer: u64, number: u64) -> String {
    format!("{writer}:{number};").repeat(1 + (number % 50) as usize)
}

fn parse(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |value| std::str::from_utf8(value).unwrap().parse().unwrap())
}

/// Each writer's last step.
pub type Progress = BTreeMap<u64, u64>;

/// Checks everything that is there, and yields how far each writer had come. An error is the store's own;
/// content that no prefix explains panics.
pub fn check(reader: &dyn Reader) -> Result<Progress> {
    let mut progress = Progress::new();
    for writer in 0..WRITERS {
        let get = |name: &str| block_on(reader.get(format!("{name}/{writer}").as_bytes()));
        let (last, oldest) = (parse(get("last")?.as_deref()), parse(get("oldest")?.as_deref()));
        check_rows(reader, writer, oldest.max(1), last)?;
        assert!(oldest + TRIM_EVERY + TRIM_KEEPS > last, "trimmed in time");
        progress.insert(writer, last);
    }
    let total: u64 = progress.values().sum();
    check_log(reader, total)?;
    let count = decode_counter(block_on(reader.get(b"count"))?.as_deref())?;
    assert_eq!(count as u64, total, "the counter");
    Ok(progress)
}

fn check_rows(reader: &dyn Reader, writer: u64, oldest: u64, last: u64) -> Result<()> {
    let numbers = oldest..=last;
    let expected: Vec<(String, String)> = numbers
        .flat_map(|number| PARTS.map(|part| (row(writer, number, part), value(writer, number))))
        .collect();
    let found = texts(reader, KeyRange::prefix(format!("row/{writer}/")))?;
    assert!(found == expected, "the rows of writer {writer} from {oldest} to {last} differ");
    for (key, value) in expected.iter().step_by(7) {
        let stored = block_on(reader.get(key.as_bytes()))?;
        assert_eq!(stored.as_deref(), Some(value.as_bytes()), "{key} by itself");
    }
    Ok(())
}

/// The log is numbered without gaps, and holds each writer's steps in their order.
fn check_log(reader: &dyn Reader, total: u64) -> Result<()> {
    let mut expected_sequence = 0;
    let mut seen = Progress::new();
    scan(reader, KeyRange::prefix("log/"), &mut |key, value| {
        expected_sequence += 1;
        assert_eq!(key[4..], u64::to_be_bytes(expected_sequence), "the log's numbering");
        let (_, value) = decode_log_entry(&Value::copy_from_slice(value)).unwrap();
        let (writer, number) = std::str::from_utf8(&value).unwrap().split_once(' ').unwrap();
        let last = seen.entry(writer.parse().unwrap()).or_default();
        *last += 1;
        assert_eq!(number.parse::<u64>().unwrap(), *last, "the steps of writer {writer}");
    })?;
    assert_eq!(expected_sequence, total, "entries in the log");
    Ok(())
}

fn texts(reader: &dyn Reader, range: KeyRange) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    scan(reader, range, &mut |key, value| found.push((text(key), text(value))))?;
    Ok(found)
}

fn scan(
    reader: &dyn Reader,
    range: KeyRange,
    visit: &mut (dyn FnMut(&[u8], &[u8]) + Send),
) -> Result<()> {
    let mut visit = |key: &[u8], value: &[u8]| {
        visit(key, value);
        ControlFlow::Continue(())
    };
    block_on(reader.scan(range, Direction::Forward, &mut visit))
}

/// Nothing that was acknowledged is gone.
pub fn assert_at_least(found: &Progress, acknowledged: &Progress) {
    for (writer, number) in acknowledged {
        assert!(found[writer] >= *number, "{found:?}, acknowledged {acknowledged:?}");
    }
}
