//! The options for opening an engine.

use std::sync::Arc;
use std::time::Duration;

use crate::cache::CacheOptions;
use crate::clock::{Clock, SystemClock};
use crate::lateness::Lateness;
use crate::throughput::ThroughputMode;

#[derive(Clone)]
pub struct EngineOptions {
    pub clock: Arc<dyn Clock>,
    /// Makes everything random (table ids that clients see) repeatable; `None` seeds from the
    /// operating system.
    pub random_seed: Option<u64>,
    pub limits: Limits,
    /// How far the clock may jump forward. After a longer jump nothing expires until somebody
    /// confirms it; `None` trusts every clock. A driven clock is always trusted.
    pub clock_jump_ms_max: Option<u64>,
    /// How far the clocks of engines that share a store may differ. Nothing counts as past before
    /// all of them agree. Has no effect on an engine that does not share its store.
    pub clock_skew_ms_max: u64,
    /// How long an engine on a shared store may be silent before another takes over its background
    /// work.
    pub lease_period: Duration,
    /// The name that operators use for this engine among those that share its store.
    pub node_name: String,
    pub streams: StreamOptions,
    /// How far in the past the latest restorable time is. On DynamoDB it is five minutes; here it
    /// may be zero.
    pub restorable_lag: Duration,
    /// How long a global index that is added or deleted keeps each status.
    pub index_status_delay: Duration,
    /// A cache for eventually consistent reads of single items. `None` reads them from the store.
    pub item_cache: Option<CacheOptions>,
    /// A cache for eventually consistent pages of Query and Scan.
    pub query_cache: Option<CacheOptions>,
    /// What a test asks to be late; `None` outside of tests.
    pub lateness: Option<Arc<dyn Lateness>>,
    /// What to do with requests that DynamoDB would throttle, on tables that don't say it themselves.
    pub throughput: ThroughputMode,
    /// The laxest mode that a table may have, whatever its tag says.
    pub throughput_min: ThroughputMode,
}

const MINUTE_MS: u64 = 60 * 1_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            clock: Arc::new(SystemClock),
            random_seed: None,
            limits: Limits::default(),
            clock_jump_ms_max: Some(DAY_MS),
            clock_skew_ms_max: 10 * MINUTE_MS,
            lease_period: Duration::from_secs(10),
            node_name: String::new(),
            streams: StreamOptions::default(),
            restorable_lag: Duration::ZERO,
            index_status_delay: Duration::ZERO,
            item_cache: None,
            query_cache: None,
            lateness: None,
            throughput: ThroughputMode::default(),
            throughput_min: ThroughputMode::Off,
        }
    }
}

/// How streams are divided, and how long they can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamOptions {
    /// Open shards of each stream that is enabled from now on: from 1 to 1,000.
    pub shards: u32,
    /// How long a shard takes records before its children take over.
    pub shard_rollover_ms: u64,
    /// After how many records the background work rolls a shard over, whatever its age.
    pub shard_records_max: Option<u64>,
    /// How long records and disabled streams can be read.
    pub retention_ms: u64,
}

impl Default for StreamOptions {
    fn default() -> StreamOptions {
        StreamOptions {
            shards: 1,
            shard_rollover_ms: 4 * HOUR_MS,
            shard_records_max: None,
            retention_ms: DAY_MS,
        }
    }
}

/// The quotas of an account. The defaults are DynamoDB's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tables per namespace.
    pub tables_max: u64,
    /// Read (and, separately, write) units of a table or a global index, provisioned or as an
    /// on-demand maximum.
    pub table_capacity_units_max: u64,
    /// Provisioned read (and, separately, write) units of all tables and global indexes of a namespace
    /// together.
    pub account_capacity_units_max: u64,
    /// What all tables and global indexes of an account may consume together, in all its regions;
    /// `None` means no limit. DynamoDB has none.
    pub account_read_units_per_second: Option<u64>,
    pub account_write_units_per_second: Option<u64>,
    pub global_indexes_max: usize,
    pub tags_max: usize,
    /// Rules of Contributor Insights per namespace: CloudWatch's limit.
    pub insight_rules_max: usize,
    /// How long the time-to-live settings stay locked after a change.
    pub time_to_live_change_interval_ms: u64,
    /// How many bytes an item collection (a partition of a table with local indexes) may hold.
    pub collection_size_bytes_max: u64,
}

impl Limits {
    /// DynamoDB's default quotas of capacity units.
    pub const TABLE_CAPACITY_UNITS: u32 = 40_000;
    pub const ACCOUNT_CAPACITY_UNITS: u32 = 80_000;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            tables_max: 2_500,
            table_capacity_units_max: Limits::TABLE_CAPACITY_UNITS.into(),
            account_capacity_units_max: Limits::ACCOUNT_CAPACITY_UNITS.into(),
            account_read_units_per_second: None,
            account_write_units_per_second: None,
            global_indexes_max: 20,
            tags_max: 50,
            insight_rules_max: 100,
            time_to_live_change_interval_ms: 30 * 60 * 1_000,
            collection_size_bytes_max: 10 * 1_024 * 1_024 * 1_024,
        }
    }
}
