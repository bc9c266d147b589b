//! Figures about streams, for operators.

use std::sync::Arc;

use zenobe_store::KeyRange;

use super::read::rows;
use super::shard_log::ShardLog;
use crate::Engine;
use crate::command::{StreamName, TableName};
use crate::error::Result;
use crate::keyspace;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamStatistics {
    pub stream: StreamName,
    pub enabled: bool,
    /// Shards that can be read.
    pub shards: u64,
    /// The age of the oldest stored record; `None` without records.
    pub oldest_record_age_ms: Option<u64>,
}

impl Engine {
    /// The figures of all streams. Takes two reads per shard.
    pub async fn stream_statistics(&self) -> Result<Vec<StreamStatistics>> {
        let reader = self.store.snapshot();
        let (now_ms, horizon_ms) = (self.clock.now_ms(), self.stream_horizon_ms());
        let mut statistics = Vec::new();
        let range = KeyRange::prefix(keyspace::streams_prefix());
        for row in rows(&*reader, range, |_| true, usize::MAX).await? {
            let (mut shards, mut oldest_ms) = (0, None::<u64>);
            for shard in row.shards_since(horizon_ms) {
                shards += 1;
                let log = ShardLog::new(&*reader, row.log(shard.id.number));
                if let Some(first) = log.first().await?
                    && let Some(at_ms) = log.time_of(first).await?
                {
                    oldest_ms = Some(oldest_ms.map_or(at_ms, |oldest_ms| oldest_ms.min(at_ms)));
                }
            }
            let namespace = Arc::new(row.namespace);
            let table = TableName { namespace, name: row.table_name };
            statistics.push(StreamStatistics {
                stream: StreamName { table, label: row.settings.label },
                enabled: row.disabled_at_ms.is_none(),
                shards,
                oldest_record_age_ms: oldest_ms.map(|oldest_ms| now_ms.saturating_sub(oldest_ms)),
            });
        }
        Ok(statistics)
    }
}
