//! Reads one shard from a checkpoint to its end, through expired iterators and retention.

use zenobe_engine::consumers::{Checkpoint, ShardName};

use super::record::DeliveredRecord;
use super::source::{SourceError, Streams};

pub struct ShardReader {
    streams: Streams,
    shard: ShardName,
    /// Where to continue if the iterator is lost.
    position: Checkpoint,
    iterator: Option<String>,
    is_at_end: bool,
    /// The record after the position was trimmed. The next remaining record shows how many were
    /// lost.
    has_lost_place: bool,
}

/// Records in order, and what retention removed before them.
#[derive(Debug, Default)]
pub struct RecordBatch {
    pub records: Vec<DeliveredRecord>,
    pub trimmed: u64,
    /// The rest of the shard is gone; how much that was is unknown.
    pub is_gone: bool,
}

impl ShardReader {
    pub fn new(streams: Streams, shard: ShardName, position: Checkpoint) -> ShardReader {
        let is_at_end = position == Checkpoint::Finished;
        let (iterator, has_lost_place) = (None, false);
        ShardReader { streams, shard, position, iterator, is_at_end, has_lost_place }
    }

    /// Reads only records written from now on.
    pub fn from_now_on(streams: Streams, shard: ShardName) -> ShardReader {
        let position = Checkpoint::Finished;
        let reader = ShardReader::new(streams, shard, position);
        ShardReader { is_at_end: false, ..reader }
    }

    /// Whether the shard is closed and everything in it was read.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// The next records; empty if there are none yet.
    pub async fn read(&mut self) -> Result<RecordBatch, SourceError> {
        let ShardName { stream, shard } = &self.shard;
        let iterator = match self.iterator.take() {
            Some(iterator) => iterator,
            None => match self.streams.iterator(stream, shard, &self.position).await {
                // The position is gone, but records after it may remain.
                Err(SourceError::Trimmed) => {
                    self.has_lost_place = true;
                    self.streams.iterator(stream, shard, &Checkpoint::Oldest).await?
                }
                Err(SourceError::NotFound) => return Ok(self.end()),
                outcome => outcome?,
            },
        };
        match self.streams.read(stream, &iterator).await {
            Ok(page) => {
                self.is_at_end = page.next.is_none();
                self.iterator = page.next;
                Ok(self.advance(page.records))
            }
            // The next call gets a fresh iterator.
            Err(SourceError::Expired | SourceError::Trimmed) => Ok(RecordBatch::default()),
            Err(SourceError::NotFound) => Ok(self.end()),
            Err(error) => {
                self.iterator = Some(iterator);
                Err(error)
            }
        }
    }

    /// Retention has removed the whole shard.
    fn end(&mut self) -> RecordBatch {
        self.is_at_end = true;
        RecordBatch { is_gone: true, ..RecordBatch::default() }
    }

    fn advance(&mut self, records: Vec<DeliveredRecord>) -> RecordBatch {
        let trimmed = records.first().map_or(0, |first| gap(&self.position, first));
        // At the end of a shard no further record shows how many were lost.
        let is_gone = self.has_lost_place && self.is_at_end && records.is_empty();
        if let Some(last) = records.last() {
            self.has_lost_place = false;
            self.position = Checkpoint::After { sequence: last.sequence.clone() };
        }
        RecordBatch { records, trimmed, is_gone }
    }
}

/// How many records are missing between a position and the next record. A shard numbers its records
/// without gaps.
fn gap(position: &Checkpoint, first: &DeliveredRecord) -> u64 {
    let Checkpoint::After { sequence } = position else { return 0 };
    match (sequence.parse::<u128>(), first.position()) {
        (Ok(last), Some(next)) => u64::try_from(next.saturating_sub(last + 1)).unwrap_or(u64::MAX),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::sample;
    use super::*;

    #[test]
    fn lost_records_are_counted_by_their_numbers() {
        let after = |sequence: &str| Checkpoint::After { sequence: sequence.into() };
        assert_eq!(gap(&after("4"), &sample(5, 0)), 0);
        assert_eq!(gap(&after("4"), &sample(10, 0)), 5);
        assert_eq!(gap(&after("4"), &sample(2, 0)), 0);
        assert_eq!(gap(&Checkpoint::Oldest, &sample(10, 0)), 0);
    }
}
