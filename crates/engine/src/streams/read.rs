//! Reads streams. Every call works on one snapshot of durable state: when a shard shows as closed,
//! its last record shows as well.

use std::ops::ControlFlow;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;
use zenobe_store::{Direction, Key, KeyRange, Reader};

use super::record;
use super::sequence_number::SequenceNumber;
use super::shard_log::{LogEntry, ShardLog};
use super::shards::{Shard, ShardId};
use super::stream_row::StreamRow;
use crate::Engine;
use crate::command::{
    DescribeStream, IteratorStart, ListStreams, RecordPage, ShardDescription, StreamDescription,
    StreamName, StreamPage, StreamPosition, StreamRecord, TableName,
};
use crate::error::{Result, StreamError};
use crate::keyspace;
use crate::schema::{StreamSettings, StreamViewType};
use crate::tables::stream_label;

/// How long a position stays valid.
const POSITION_AGE_MS_MAX: u64 = 15 * 60 * 1_000;
const PAGE_BYTES_MAX: usize = 1 << 20;

/// A shard to read.
struct OpenShard<'r> {
    shard: ShardId,
    log: ShardLog<'r>,
    /// What is older is no longer shown.
    horizon_ms: u64,
}

impl Engine {
    /// Streams sorted by their tables' names, then by their labels.
    pub async fn list_streams(&self, command: &ListStreams) -> Result<StreamPage> {
        let horizon_ms = self.stream_horizon_ms();
        let prefix = match &command.table {
            Some(table) => keyspace::table_streams_prefix(&command.namespace, table),
            None => keyspace::namespace_streams_prefix(&command.namespace),
        };
        let mut range = KeyRange::prefix(prefix);
        if let Some((table, label)) = &command.start_after {
            let start = keyspace::stream_row(&command.namespace, table, label);
            range.start = range.start.max([&start, &[0][..]].concat().into());
        }
        let is_readable = |row: &StreamRow| !row.is_past(horizon_ms);
        // Reads one more than requested, to see whether there are more.
        let mut rows = rows(&*self.store, range, is_readable, command.limit + 1).await?;
        let more = rows.len() > command.limit;
        rows.truncate(command.limit);
        let name = |row: StreamRow| {
            let namespace = Arc::clone(&command.namespace);
            let table = TableName { namespace, name: row.table_name };
            StreamName { table, label: row.settings.label }
        };
        Ok(StreamPage { streams: rows.into_iter().map(name).collect(), more })
    }

    pub async fn describe_stream(&self, command: &DescribeStream) -> Result<StreamDescription> {
        let reader = self.store.snapshot();
        let (row, horizon_ms) = self.readable_stream(&*reader, &command.stream).await?;
        let is_wanted = |shard: &Shard| {
            let starts = command.start_after.as_deref();
            let is_child = command.children_of.as_deref().is_none_or(|parent| {
                shard.parent.is_some_and(|own_parent| own_parent.to_string() == parent)
            });
            is_child && starts.is_none_or(|start| *shard.id.to_string() > *start)
        };
        let mut shards = Vec::new();
        let mut more = false;
        for shard in row.shards_since(horizon_ms).filter(is_wanted) {
            if shards.len() == command.limit {
                more = true;
                break;
            }
            shards.push(describe_shard(&*reader, &row, shard).await?);
        }
        Ok(StreamDescription {
            stream: command.stream.clone(),
            view_type: row.settings.view_type,
            enabled: row.disabled_at_ms.is_none(),
            created_at_ms: row.settings.created_at_ms,
            keys: row.keys,
            shards,
            more,
        })
    }

    /// A position in a shard, valid for fifteen minutes.
    pub async fn shard_iterator(
        &self,
        stream: &StreamName,
        shard: &str,
        start: IteratorStart,
    ) -> Result<StreamPosition> {
        let reader = self.store.snapshot();
        let OpenShard { shard, log, horizon_ms } = self.open_shard(&*reader, stream, shard).await?;
        let next_entry = match start {
            IteratorStart::TrimHorizon => log.first_since(horizon_ms).await?,
            IteratorStart::Latest => log.last().await?.unwrap_or(0) + 1,
            IteratorStart::At(number) => {
                let entry = entry_in(&log, shard, number).await?.max(1);
                readable_from(&log, entry, horizon_ms).await?
            }
            // The record itself may be trimmed: a consumer that has read it misses nothing.
            IteratorStart::After(number) => {
                let entry = entry_in(&log, shard, number).await? + 1;
                readable_from(&log, entry, horizon_ms).await?
            }
            IteratorStart::AtTimestamp { at_ms } => {
                if at_ms > self.clock.now_ms().saturating_add(self.clock_skew_ms()) {
                    return Err(StreamError::TimestampInFuture.into());
                }
                log.first_since(at_ms.max(horizon_ms)).await?
            }
        };
        let created_at_ms = self.clock.now_ms();
        let shard = shard.number;
        Ok(StreamPosition { stream: stream.clone(), shard, next_entry, created_at_ms })
    }

    /// The number of the last record in a shard, if there was any.
    pub async fn last_sequence_number(
        &self,
        stream: &StreamName,
        shard: &str,
    ) -> Result<Option<SequenceNumber>> {
        let reader = self.store.snapshot();
        let OpenShard { shard, log, .. } = self.open_shard(&*reader, stream, shard).await?;
        let last = log.last().await?;
        Ok(last.map(|entry| SequenceNumber { shard: shard.number, entry }))
    }

    /// The records from a position on, in order. The outcome has no next position at the end of a
    /// closed shard.
    pub async fn get_records(&self, position: &StreamPosition, limit: usize) -> Result<RecordPage> {
        let now_ms = self.clock.now_ms();
        let age_ms = now_ms.saturating_sub(position.created_at_ms);
        if age_ms > POSITION_AGE_MS_MAX + self.clock_skew_ms() {
            return Err(StreamError::PositionExpired.into());
        }
        let reader = self.store.snapshot();
        let row = StreamRow::read(&*reader, &position.stream).await?;
        let mut shards = row.settings.shards(row.disabled_at_ms);
        let Some(shard) = shards.find(|shard| shard.id.number == position.shard) else {
            return Err(StreamError::Trimmed.into());
        };
        let log = ShardLog::new(&*reader, row.log(position.shard));
        let mut page = log.read(position.next_entry, limit, PAGE_BYTES_MAX).await?;
        if let Some(late) = &self.lateness {
            let table = &position.stream.table;
            page.hide_after(|entry| {
                let delay_ms = late.rules.record_delay_ms(table, position.shard, entry.number);
                entry.at_ms.saturating_add(delay_ms) > now_ms
            });
        }
        let mut records = Vec::with_capacity(page.entries.len());
        for entry in &page.entries {
            records.push(stream_record(&row, position.shard, entry)?);
        }
        let at_end = !page.more && shard.closed_at_ms.is_some();
        let next_entry = page.entries.last().map_or(position.next_entry, |last| last.number + 1);
        let next = StreamPosition { next_entry, created_at_ms: now_ms, ..position.clone() };
        Ok(RecordPage { records, next: (!at_end).then_some(next) })
    }

    /// The latest label among the existing streams of tables with that name. Earlier tables count,
    /// because a stream is identified by name and label.
    pub(crate) async fn latest_stream_label(&self, table: &TableName) -> Result<Option<String>> {
        let range = KeyRange::prefix(keyspace::table_streams_prefix(&table.namespace, &table.name));
        Ok(last_row(&*self.store, range).await?.map(|row| row.settings.label))
    }

    /// The settings of a stream to enable, with a label after `latest`.
    pub(crate) fn new_stream(
        &self,
        view_type: StreamViewType,
        latest: Option<&str>,
    ) -> StreamSettings {
        let now_ms = self.trusted_clock.read().stamp_ms;
        let label = stream_label::next(latest, now_ms);
        StreamSettings::new(view_type, label, self.streams.shards, now_ms)
    }

    /// Older records are no longer shown.
    pub(super) fn stream_horizon_ms(&self) -> u64 {
        let kept_ms = self.streams.retention_ms.saturating_add(self.clock_skew_ms());
        self.trusted_clock.read().past_ms.saturating_sub(kept_ms)
    }

    async fn open_shard<'r>(
        &self,
        reader: &'r dyn Reader,
        stream: &StreamName,
        shard: &str,
    ) -> Result<OpenShard<'r>> {
        let (row, horizon_ms) = self.readable_stream(reader, stream).await?;
        let named = |other: &Shard| shard.parse() == Ok(other.id);
        let shard = row.shards_since(horizon_ms).find(named).ok_or(StreamError::ShardNotFound)?.id;
        Ok(OpenShard { shard, log: ShardLog::new(reader, row.log(shard.number)), horizon_ms })
    }

    async fn readable_stream(
        &self,
        reader: &dyn Reader,
        name: &StreamName,
    ) -> Result<(StreamRow, u64)> {
        let horizon_ms = self.stream_horizon_ms();
        let row = StreamRow::read(reader, name).await?;
        if row.is_past(horizon_ms) {
            return Err(StreamError::NotFound.into());
        }
        Ok((row, horizon_ms))
    }
}

/// The entry of a sequence number, which must lie within the shard as it is now.
async fn entry_in(log: &ShardLog<'_>, shard: ShardId, number: SequenceNumber) -> Result<u64> {
    let last = log.last().await?.unwrap_or(0);
    if number.shard != shard.number || number.entry > last {
        return Err(StreamError::SequenceNumberNotInShard.into());
    }
    Ok(number.entry)
}

/// The entry, unless it or later ones are past their retention. It need not have been written yet.
async fn readable_from(log: &ShardLog<'_>, entry: u64, horizon_ms: u64) -> Result<u64> {
    let is_written = log.last().await?.is_some_and(|last| entry <= last);
    if is_written && log.time_of(entry).await?.is_none_or(|at_ms| at_ms < horizon_ms) {
        return Err(StreamError::Trimmed.into());
    }
    Ok(entry)
}

async fn describe_shard(
    reader: &dyn Reader,
    row: &StreamRow,
    shard: Shard,
) -> Result<ShardDescription> {
    let number = shard.id.number;
    let last = match shard.closed_at_ms {
        None => None,
        Some(_) => {
            let entry = ShardLog::new(reader, row.log(number)).last().await?.unwrap_or(0);
            Some(SequenceNumber { shard: number, entry })
        }
    };
    let first = SequenceNumber { shard: number, entry: 0 };
    Ok(ShardDescription { id: shard.id, parent: shard.parent, first, last })
}

fn stream_record(row: &StreamRow, shard: u32, entry: &LogEntry) -> Result<StreamRecord> {
    let sequence_number = SequenceNumber { shard, entry: entry.number };
    let record = record::decode(&entry.value, &row.keys)?;
    let images = [Some(&record.keys), record.new.as_ref(), record.old.as_ref()];
    let sizes = images.into_iter().flatten().map(|item| item.as_item().size_bytes() as u64);
    let identity = format!("{}/{}/{sequence_number}", row.table_uuid, row.settings.label);
    Ok(StreamRecord {
        id: xxh3_128(identity.as_bytes()),
        event: record.event,
        by_service: record.by_service,
        created_at_ms: entry.at_ms,
        sequence_number,
        view_type: row.settings.view_type,
        size_bytes: sizes.sum(),
        keys: record.keys,
        new: record.new,
        old: record.old,
    })
}

/// The first wanted rows in a range.
pub(super) async fn rows(
    reader: &dyn Reader,
    range: KeyRange,
    is_wanted: impl Fn(&StreamRow) -> bool + Send + Sync,
    count_max: usize,
) -> Result<Vec<StreamRow>> {
    let (mut rows, mut failure) = (Vec::new(), None);
    let mut visit = |_: &[u8], row: &[u8]| {
        match StreamRow::decode(row) {
            Ok(row) if is_wanted(&row) => rows.push(row),
            Ok(_) => {}
            Err(error) => failure = Some(error),
        }
        match rows.len() < count_max && failure.is_none() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    };
    reader.scan(range, Direction::Forward, &mut visit).await?;
    failure.map_or(Ok(rows), Err)
}

async fn last_row(reader: &dyn Reader, range: KeyRange) -> Result<Option<StreamRow>> {
    let mut last: Option<Key> = None;
    let mut visit = |_: &[u8], row: &[u8]| {
        last = Some(Key::copy_from_slice(row));
        ControlFlow::Break(())
    };
    reader.scan(range, Direction::Reverse, &mut visit).await?;
    last.map(|row| StreamRow::decode(&row)).transpose()
}
