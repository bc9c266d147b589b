//! Streams: every change of an item as a record, in commit order.
//!
//! The record is appended in the batch that changes the item ([`crate::change`]), so there is exactly one per
//! change, whatever happens in between. A stream is divided by the hash of the partition key into slots; the
//! records of a slot go to its one open shard. From time to time all open shards close and their children
//! take over ([`maintenance`]). That is a change of the table's definition, which every write guards: no
//! record can land in a closed shard.
//!
//! The settings of an enabled stream are part of its table's definition. A row of its own, written along with
//! the definition, keeps a stream readable after it was disabled and after its table was deleted.

mod log;
mod maintenance;
mod read;
pub(crate) mod record;
mod row;
mod sequence_number;
mod shards;
mod statistics;

use std::collections::HashMap;

use parking_lot::RwLock;
use tokio::sync::watch;

use crate::Engine;
use crate::command::TableName;

pub use record::StreamEvent;
pub use sequence_number::{NotASequenceNumber, SequenceNumber};
pub use shards::{NotAShardId, ShardId};
pub use statistics::StreamStatistics;

pub(crate) use maintenance::{maintain, rest};
pub(crate) use row::{put_row, retire};

/// Tells whoever waits for a table's records that there are new ones.
#[derive(Default)]
pub(crate) struct Announcements {
    /// Only tables that somebody waits for.
    tables: RwLock<HashMap<TableName, watch::Sender<u64>>>,
}

impl Announcements {
    /// To be called after a commit with records of the table, and after shards of its streams were closed.
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
    /// Changes whenever this engine has committed stream records of a table of that name. A hint to look, for
    /// consumers that would have to poll otherwise: records of other engines on the same store don't show.
    pub fn stream_notify(&self, table: &TableName) -> watch::Receiver<u64> {
        self.announcements.subscribe(table)
    }
}
