//! Streams: every change of an item as a record, in commit order.
//!
//! The batch that changes the item also appends the record ([`crate::change`]), so there is exactly
//! one per change, whatever happens in between. The hash of the partition key divides a stream into
//! slots, and the records of a slot go to its one open shard. From time to time all open shards
//! close and their children take over ([`rollover`]). That is a change of the table's
//! definition, which every write guards: no record can land in a closed shard.
//!
//! The settings of an enabled stream are part of its table's definition. A separate row, written
//! together with the definition, keeps a stream readable after it was disabled and after its table
//! was deleted.

mod read;
pub(crate) mod record;
mod rollover;
mod sample;
mod sequence_number;
mod shard_log;
mod shards;
mod statistics;
mod stream_row;

use std::collections::HashMap;

use parking_lot::RwLock;
use tokio::sync::watch;

use crate::Engine;
use crate::command::TableName;

pub use record::StreamEvent;
pub use rollover::StreamSplit;
pub use sample::sample_record;
pub use sequence_number::{NotASequenceNumber, SequenceNumber};
pub use shards::{NotAShardId, ShardId};
pub use statistics::StreamStatistics;

pub(crate) use rollover::{maintain, rest};
pub(crate) use stream_row::{put_row, retire};

/// Tells waiting readers when a table has new records.
#[derive(Default)]
pub(crate) struct Announcements {
    /// Only tables that somebody waits for.
    tables: RwLock<HashMap<TableName, watch::Sender<u64>>>,
}

impl Announcements {
    /// Call this after a commit with records of the table, and after shards of its streams were
    /// closed.
    pub(crate) fn announce(&self, table: &TableName) {
        if let Some(commits) = self.tables.read().get(table) {
            commits.send_modify(|commits| *commits += 1);
        }
    }

    fn subscribe(&self, table: &TableName) -> watch::Receiver<u64> {
        let mut tables = self.tables.write();
        tables.retain(|_, commits| commits.receiver_count() > 0);
        tables.entry(table.clone()).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }
}

impl Engine {
    /// Changes whenever this engine has committed stream records of a table with that name. It is a
    /// hint for consumers that would have to poll otherwise; it does not show records of other
    /// engines on the same store.
    pub fn stream_notify(&self, table: &TableName) -> watch::Receiver<u64> {
        self.announcements.subscribe(table)
    }
}
