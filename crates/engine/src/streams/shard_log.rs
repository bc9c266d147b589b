//! The log of one shard. Its entries are numbered without gaps, from the first remaining one to the
//! last.

use std::ops::ControlFlow;

use zenobe_store::{Direction, Key, Reader, Value, decode_log_entry, log_entry_key, log_range};

use crate::error::{Error, Result};

pub(super) struct ShardLog<'r> {
    reader: &'r dyn Reader,
    key: Key,
}

pub(super) struct LogEntry {
    pub number: u64,
    /// The commit time. Within a log, no entry is older than the one before it.
    pub at_ms: u64,
    pub value: Value,
}

/// Entries of a page.
pub(super) struct LogPage {
    pub entries: Vec<LogEntry>,
    /// Whether the log may hold more.
    pub more: bool,
}

impl LogPage {
    /// Ends the page before the first entry that does not show yet. Later ones don't show either: a
    /// reader goes on behind the last one it saw.
    pub fn hide_after(&mut self, is_hidden: impl Fn(&LogEntry) -> bool) {
        if let Some(first) = self.entries.iter().position(is_hidden) {
            self.entries.truncate(first);
            self.more = true;
        }
    }
}

impl<'r> ShardLog<'r> {
    pub fn new(reader: &'r dyn Reader, key: Key) -> ShardLog<'r> {
        ShardLog { reader, key }
    }

    pub async fn first(&self) -> Result<Option<u64>> {
        self.end(Direction::Forward).await
    }

    pub async fn last(&self) -> Result<Option<u64>> {
        self.end(Direction::Reverse).await
    }

    /// The time of an entry, if it exists.
    pub async fn time_of(&self, number: u64) -> Result<Option<u64>> {
        let value = self.reader.get(&log_entry_key(&self.key, number)).await?;
        value.map(|entry| Ok(decode(&entry)?.0)).transpose()
    }

    /// The number of the first entry at `since_ms` or later. If there is none yet, the number of
    /// the next entry.
    pub async fn first_since(&self, since_ms: u64) -> Result<u64> {
        let (Some(first), Some(last)) = (self.first().await?, self.last().await?) else {
            return Ok(1);
        };
        let (mut low, mut high) = (first, last + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            let time = self.time_of(middle).await?.ok_or_else(gap)?;
            if time < since_ms {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Entries from number `first` on, up to these limits on count and bytes. A single entry may
    /// exceed the latter.
    pub async fn read(&self, first: u64, count_max: usize, bytes_max: usize) -> Result<LogPage> {
        let (mut entries, mut bytes, mut more) = (Vec::new(), 0, false);
        let mut range = log_range(&self.key);
        range.start = log_entry_key(&self.key, first);
        let mut visit = |key: &[u8], value: &[u8]| {
            bytes += value.len();
            if entries.len() == count_max || (bytes > bytes_max && !entries.is_empty()) {
                more = true;
                return ControlFlow::Break(());
            }
            entries.push((Key::copy_from_slice(key), Value::copy_from_slice(value)));
            ControlFlow::Continue(())
        };
        self.reader.scan(range, Direction::Forward, &mut visit).await?;
        let entry = |(key, stored): (Key, Value)| {
            let (at_ms, value) = decode(&stored)?;
            Ok(LogEntry { number: self.number_in(&key)?, at_ms, value })
        };
        Ok(LogPage { entries: entries.into_iter().map(entry).collect::<Result<_>>()?, more })
    }

    async fn end(&self, direction: Direction) -> Result<Option<u64>> {
        let mut found = None;
        let mut visit = |key: &[u8], _: &[u8]| {
            found = Some(Key::copy_from_slice(key));
            ControlFlow::Break(())
        };
        self.reader.scan(log_range(&self.key), direction, &mut visit).await?;
        found.map(|key| self.number_in(&key)).transpose()
    }

    fn number_in(&self, key: &[u8]) -> Result<u64> {
        let number = key.get(self.key.len()..).and_then(|rest| rest.try_into().ok());
        let corrupt = || Error::Corrupt { detail: "the key of a stream record".to_owned() };
        number.map(u64::from_be_bytes).ok_or_else(corrupt)
    }
}

/// The time of an entry, and its record.
fn decode(entry: &Value) -> Result<(u64, Value)> {
    decode_log_entry(entry).map_err(|error| Error::Corrupt { detail: error.to_string() })
}

fn gap() -> Error {
    Error::Corrupt { detail: "a stream record is missing".to_owned() }
}
