//! Whether replaying the logs would lose acknowledged writes.
//!
//! In the logs that are still needed, intact records have consecutive sequence numbers, across files too. Replay leaves a
//! file at the first byte that it cannot read, and continues with a later file only if its numbers are consecutive. So
//! unreadable bytes at the end of a file, which every reused file has, matter only if numbers are missing afterwards.
//! Unreadable bytes in the middle always matter.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rocksdb::{ColumnFamilyDescriptor, DB, DEFAULT_COLUMN_FAMILY_NAME};
use zenobe_store::{Error, Result};

use super::horizon::Nonce;
use super::reader::{LogRecord, read_records};
use crate::options::{Options, entries_options, rocksdb_options};
use crate::rocks_database::open_error;

/// The header of a fragment without data, with a checksum that is not its own.
const BROKEN_HEADER: [u8; 7] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 1];

/// Reads the logs of a database before RocksDB opens it. If acknowledged writes would be lost, it refuses the database
/// and changes nothing, unless the loss is accepted. A gap that is acceptable is marked, so that replay ends there.
pub(crate) fn check(
    database: &Path,
    nonce: Nonce,
    options: &Options,
    accept_damage: AcceptDamage,
) -> Result<()> {
    let mut logs = list_logs(database).map_err(|error| log_error(database, &error))?;
    for log in &mut logs {
        log.read(nonce).map_err(|error| log_error(&log.path, &error))?;
    }
    if find_gap(&logs).is_none() {
        return Ok(());
    }
    // Logs that are no longer needed may have any numbers. They are rare, and finding out which are needed is slow.
    let oldest_needed = oldest_needed_log(database, options)?;
    logs.retain(|log| log.number >= oldest_needed);
    let Some(gap) = find_gap(&logs) else { return Ok(()) };
    if gap.is_acknowledged() && accept_damage == AcceptDamage::No {
        return Err(Error::Corrupt { detail: gap.describe() });
    }
    if gap.is_acknowledged() {
        tracing::error!("--accept-damaged-log accepts this loss: {}", gap.describe());
    } else {
        tracing::warn!("{}", gap.describe());
    }
    gap.end_replay().map_err(|error| log_error(gap.damaged, &error))
}

/// Whether to open a database without the acknowledged writes that a damaged log has lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AcceptDamage {
    No,
    /// The operator accepts the loss, for this one opening.
    Yes,
}

struct Log {
    path: PathBuf,
    number: u64,
    runs: Vec<RecordRun>,
    /// Where the damage after its last run begins, if there is some.
    damage: Option<u64>,
}

/// Intact records next to each other, whose sequence numbers follow without a gap.
#[derive(Debug, PartialEq, Eq)]
struct RecordRun {
    offset: u64,
    /// Where the damage before it begins, if it follows some.
    damage: Option<u64>,
    first: u64,
    /// The sequence number that would come next.
    next: u64,
    /// The last sequence number that a record of this run knew to be durable.
    horizon: u64,
}

/// Sequence numbers that replay does not reach, although later ones are there.
struct Gap<'a> {
    first_missing: u64,
    /// The log and the place in it where replay has to end.
    damaged: &'a Path,
    damage_offset: u64,
    /// The last sequence number that a record after the gap knew to be durable.
    horizon: u64,
}

fn list_logs(database: &Path) -> io::Result<Vec<Log>> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(database)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_suffix(".log").and_then(|number| number.parse().ok());
        if let Some(number) = number {
            logs.push(Log { path, number, runs: Vec::new(), damage: None });
        }
    }
    logs.sort_by_key(|log| log.number);
    Ok(logs)
}

impl Log {
    fn read(&mut self, nonce: Nonce) -> io::Result<()> {
        let Log { path, number, runs, damage } = self;
        *damage = read_records(path, *number, nonce, |record| match runs.last_mut() {
            Some(run) if run.next == record.sequence && record.damage.is_none() => run.add(&record),
            _ => runs.push(RecordRun::new(&record)),
        })?;
        Ok(())
    }
}

impl RecordRun {
    fn new(record: &LogRecord) -> RecordRun {
        let LogRecord { offset, damage, sequence, .. } = *record;
        let mut run = RecordRun { offset, damage, first: sequence, next: sequence, horizon: 0 };
        run.add(record);
        run
    }

    fn add(&mut self, record: &LogRecord) {
        self.next = record.sequence.saturating_add(record.entries.into());
        self.horizon = self.horizon.max(record.horizon);
    }
}

fn find_gap(logs: &[Log]) -> Option<Gap<'_>> {
    let mut gap: Option<Gap<'_>> = None;
    let mut next: Option<u64> = None;
    // The first place that could not be read since the last run.
    let mut damage: Option<(&Path, u64)> = None;
    for log in logs {
        for run in &log.runs {
            let here = run.damage.map(|offset| (&*log.path, offset));
            let damage = here.or(damage.take());
            // Replay continues where a later log continues the numbers.
            gap = gap.filter(|gap| here.is_some() || run.first != gap.first_missing);
            let first_missing = match next {
                Some(next) => (run.first > next || here.is_some()).then_some(next),
                // The beginning cannot be read. It held at least what comes right before this run.
                None => damage.map(|_| run.first.saturating_sub(1)),
            };
            if let (None, Some(first_missing)) = (&gap, first_missing) {
                let (damaged, damage_offset) = damage.unwrap_or((&log.path, run.offset));
                gap = Some(Gap { first_missing, damaged, damage_offset, horizon: 0 });
            }
            if let Some(gap) = &mut gap {
                gap.horizon = gap.horizon.max(run.horizon);
            }
            next = Some(run.next);
        }
        damage = damage.or(log.damage.map(|offset| (&*log.path, offset)));
    }
    gap
}

impl Gap<'_> {
    /// Whether what is missing had been durable, so that it may have been acknowledged.
    fn is_acknowledged(&self) -> bool {
        self.horizon >= self.first_missing
    }

    fn describe(&self) -> String {
        let Gap { first_missing, damage_offset, horizon, .. } = self;
        let place = format!("{} is damaged at byte {damage_offset}", self.damaged.display());
        match self.is_acknowledged() {
            true => format!(
                "{place}, and acknowledged writes from there on cannot be replayed (sequence numbers \
                 {first_missing} to {horizon}). Nothing has been changed. Restore a backup, or start once with \
                 --accept-damaged-log and lose everything from there on"
            ),
            false => format!(
                "{place}, where a crash interrupted unacknowledged writes; replay ends there"
            ),
        }
    }

    /// Makes sure that replay ends here. RocksDB takes a hole of zeros for the unused end of a block and would
    /// continue after it, to a state that never existed.
    fn end_replay(&self) -> io::Result<()> {
        let mut file = File::options().write(true).open(self.damaged)?;
        file.seek(SeekFrom::Start(self.damage_offset))?;
        file.write_all(&BROKEN_HEADER)?;
        file.sync_data()
    }
}

/// The number of the first log that holds anything which is not yet in tables.
pub(super) fn oldest_needed_log(database: &Path, options: &Options) -> Result<u64> {
    let rocks = rocksdb_options(options);
    let failed = |error: &rocksdb::Error| open_error(database, error);
    // Opens every column family: RocksDB notices a missing table only in the families that it opens.
    let families = DB::list_cf(&rocks, database).map_err(|error| failed(&error))?;
    let families = families.into_iter().map(|name| match &*name {
        DEFAULT_COLUMN_FAMILY_NAME => {
            ColumnFamilyDescriptor::new(name, entries_options(&rocks, options))
        }
        _ => ColumnFamilyDescriptor::new(name, rocks.clone()),
    });
    // Replays the logs in memory, and writes nothing.
    let opened = DB::open_cf_descriptors_read_only(&rocks, database, families, false)
        .map_err(|error| open_error(database, &error))?;
    let number = opened.property_int_value("rocksdb.min-log-number-to-keep");
    Ok(number.map_err(|error| open_error(database, &error))?.unwrap_or(0))
}

fn log_error(path: &Path, error: &io::Error) -> Error {
    Error::Open { detail: format!("{}: the log cannot be read: {error}", path.display()) }
}

#[cfg(test)]
mod tests {
    use super::{Log, RecordRun, find_gap};

    /// A log of runs, each its first number, the number after it, its horizon, and whether it follows damage.
    fn log(number: u64, runs: &[(u64, u64, u64, bool)], is_damaged_after: bool) -> Log {
        let runs = runs.iter().zip(1..).map(|(&(first, next, horizon, is_damaged), place)| {
            let offset = place * 1000;
            RecordRun { offset, damage: is_damaged.then_some(offset - 500), first, next, horizon }
        });
        let damage = is_damaged_after.then_some(9000);
        Log { path: format!("{number}.log").into(), number, runs: runs.collect(), damage }
    }

    /// Where the damage is, and whether something acknowledged is missing.
    fn verdict(logs: &[Log]) -> Option<(String, u64, bool)> {
        find_gap(logs).map(|gap| {
            (gap.damaged.display().to_string(), gap.damage_offset, gap.is_acknowledged())
        })
    }

    #[test]
    fn only_missing_numbers_matter() {
        let found = |name: &str, offset, lost| Some((name.to_owned(), offset, lost));
        let cases = [
            ("empty", vec![], None),
            ("whole", vec![log(1, &[(5, 9, 8, false)], false)], None),
            ("a torn end", vec![log(1, &[(5, 9, 8, false)], true)], None),
            (
                "a reused file before another",
                vec![log(1, &[(5, 9, 8, false)], true), log(2, &[(9, 12, 9, false)], false)],
                None,
            ),
            (
                "damage before what is durable",
                vec![log(1, &[(5, 9, 7, false), (11, 15, 9, true)], false)],
                found("1.log", 1500, true),
            ),
            (
                "a hole in what is not",
                vec![log(1, &[(5, 9, 7, false), (11, 15, 8, true)], false)],
                found("1.log", 1500, false),
            ),
            (
                "a horizon far behind the damage",
                vec![
                    log(1, &[(5, 9, 7, false), (11, 15, 8, true)], false),
                    log(2, &[(15, 16, 14, false)], false),
                ],
                found("1.log", 1500, true),
            ),
            (
                "the end of a log before another",
                vec![log(1, &[(5, 9, 7, false)], true), log(2, &[(10, 12, 9, false)], false)],
                found("1.log", 9000, true),
            ),
            (
                "a log cut short before another",
                vec![log(1, &[(5, 9, 7, false)], false), log(2, &[(10, 12, 9, false)], false)],
                found("2.log", 1000, true),
            ),
            (
                "a damaged beginning",
                vec![log(1, &[(5, 9, 4, true)], false)],
                found("1.log", 500, true),
            ),
            (
                "a log of which nothing is left",
                vec![log(1, &[], true), log(2, &[(5, 9, 3, false)], false)],
                found("1.log", 9000, false),
            ),
            (
                "damage between numbers that follow each other",
                vec![log(1, &[(5, 9, 8, false), (9, 12, 8, true), (12, 13, 9, false)], true)],
                found("1.log", 1500, true),
            ),
            (
                "damage before numbers that follow those of another log",
                vec![log(1, &[(5, 9, 8, false)], true), log(2, &[(9, 12, 9, true)], false)],
                found("2.log", 500, true),
            ),
            (
                "numbers given out again after damage",
                vec![
                    log(1, &[(5, 9, 7, false), (11, 15, 8, true)], true),
                    log(2, &[(9, 12, 11, false)], false),
                ],
                None,
            ),
            (
                "numbers given out again",
                vec![log(1, &[(5, 9, 8, false)], false), log(2, &[(7, 9, 8, false)], false)],
                None,
            ),
        ];
        for (name, logs, expected) in cases {
            assert_eq!(verdict(&logs), expected, "{name}");
        }
    }
}
