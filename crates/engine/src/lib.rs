//! DynamoDB's semantics over an ordered store: tables, items, indexes, transactions, streams.
//!
//! **Invariant:** no JSON, no HTTP and no client-facing text here. Commands ([`command`]), outcomes
//! and errors ([`error`]) are typed, so the same engine can run embedded in a Rust program.
//!
//! **Invariant:** only `change` writes items and index entries.

mod background;
pub mod backups;
mod batch;
mod bulk_load;
pub mod cache;
mod capacity_units;
pub mod catalog;
mod change;
pub mod clock;
pub mod command;
pub mod consumers;
pub mod error;
pub mod export;
pub mod failed_requests;
mod garbage;
pub mod gauges;
mod health;
pub mod history;
mod indexes;
pub mod jobs;
mod keys;
pub mod keyspace;
pub mod lateness;
pub mod lease;
pub mod options;
mod pace;
mod random;
mod read;
pub mod request_facts;
pub mod request_id;
pub mod restore;
pub mod row;
pub mod schema;
pub mod service_rows;
pub mod streams;
mod table_round;
mod tables;
pub mod throughput;
mod transactions;
mod trusted_clock;
mod ttl;
mod write;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use zenobe_store::{Key, Store};

use crate::background::Background;
use crate::cache::{ItemCache, PageCache};
use crate::catalog::{Catalog, GuardCheck, Table};
use crate::clock::Clock;
use crate::command::TableName;
use crate::error::{Error, Result};
use crate::history::KnownRows;
use crate::indexes::StatusDelay;
use crate::jobs::Jobs;
use crate::lateness::EngineLateness;
use crate::lease::Leases;
use crate::random::Random;
use crate::streams::Announcements;
use crate::throughput::Meters;
use crate::trusted_clock::TrustedClock;

pub use bulk_load::{ItemLoad, LoadedSizes};
pub use cache::{CacheOptions, CacheStatistics};
pub use capacity_units::write_halves;
pub use change::Inconsistency;
pub use lateness::Lateness;
pub use options::{EngineOptions, Limits, StreamOptions};
pub use read::Reads;
pub use streams::StreamSplit;
pub use tables::{InsightsUpdate, TableReset, TableUpdate};
pub use throughput::ThroughputMode;
pub use trusted_clock::ClockStatus;

/// A database: one store, with DynamoDB's semantics on top.
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) trusted_clock: TrustedClock,
    pub(crate) random: Random,
    pub(crate) limits: Limits,
    /// Whether other engines may write to the same store ([`Engine::is_shared`]). If none does, this
    /// engine's catalogue is always right, and a read need not ask the store whether its definition
    /// of the table is current.
    is_shared: AtomicBool,
    pub(crate) leases: Leases,
    /// How far other engines' clocks may differ from this one's, if there are others.
    clock_skew_ms_max: u64,
    pub(crate) catalog: Catalog,
    /// Answers eventually consistent reads of items, if there is one.
    pub(crate) item_cache: Option<ItemCache>,
    /// Answers eventually consistent reads of pages, if there is one.
    pub(crate) query_cache: Option<PageCache>,
    pub(crate) background: Background,
    pub(crate) status_delay: StatusDelay,
    index_status_delay: Duration,
    /// What a test asks to be late.
    pub(crate) lateness: Option<Box<EngineLateness>>,
    pub(crate) streams: StreamOptions,
    /// How far in the past the latest restorable time is.
    pub(crate) restorable_lag_ms: u64,
    pub(crate) announcements: Announcements,
    pub(crate) jobs: Jobs,
    pub(crate) meters: Meters,
    /// Where reads of the past have found images.
    pub(crate) known_rows: Arc<KnownRows>,
}

impl Engine {
    /// Opens the database in `store`. [`Engine::run_background`] continues work that an earlier
    /// process left unfinished.
    pub async fn open(store: Arc<dyn Store>, options: EngineOptions) -> Result<Arc<Engine>> {
        let snapshot = store.snapshot();
        let catalog = Catalog::load(&*snapshot, options.limits, store.is_shared()).await?;
        let clock = Arc::clone(&options.clock);
        let trusted_clock =
            TrustedClock::open(&*snapshot, clock, options.clock_jump_ms_max).await?;
        let now_ms = options.clock.now_ms();
        let meters = Meters::load(&*snapshot, &options, now_ms).await?;
        let is_shared = store.is_shared();
        let (lateness, store) = match options.lateness {
            None => (None, store),
            Some(rules) => {
                let (lateness, store) = EngineLateness::new(rules, store, &options.clock);
                (Some(Box::new(lateness)), store)
            }
        };
        let random = Random::new(options.random_seed);
        // Drawn from a source of its own: whether the store is shared changes no other random number.
        let node_id = Random::new(options.random_seed).uuid();
        let known_rows = Arc::new(KnownRows::new(Random::new(options.random_seed).bits()));
        let cache_clock = || Arc::clone(&options.clock);
        let engine = Arc::new(Engine {
            item_cache: options.item_cache.map(|cache| ItemCache::new(cache, cache_clock())),
            query_cache: options.query_cache.and_then(|cache| PageCache::new(cache, cache_clock())),
            is_shared: AtomicBool::new(is_shared),
            leases: Leases::new(
                node_id,
                options.node_name,
                now_ms,
                options.lease_period,
                is_shared,
            ),
            clock_skew_ms_max: options.clock_skew_ms_max,
            store,
            clock: options.clock,
            trusted_clock,
            random,
            limits: options.limits,
            catalog,
            background: Background::default(),
            status_delay: StatusDelay::default(),
            index_status_delay: options.index_status_delay,
            lateness,
            streams: options.streams,
            restorable_lag_ms: u64::try_from(options.restorable_lag.as_millis())
                .unwrap_or(u64::MAX),
            announcements: Announcements::default(),
            jobs: Jobs::default(),
            meters,
            known_rows,
        });
        engine.warn_of_overridden_modes();
        engine.add_job_handler(Arc::new(backups::BackupHandler));
        engine.add_job_handler(Arc::new(restore::RestoreHandler));
        Ok(engine)
    }

    /// The store below, for its statistics and for operators' tools.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// A random UUID, for names that a client did not choose.
    pub fn new_uuid(&self) -> String {
        self.random.uuid()
    }

    /// The quotas of each account.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The table with this name, as this engine knows it. Writers check the handle inside the write
    /// ([`Table::check_guard`]) and call [`Engine::refresh`] if it is stale.
    pub async fn table(&self, name: &TableName) -> Result<Arc<Table>> {
        self.background.pace.request();
        self.catalog.find(&*self.store, name).await
    }

    /// All tables, as this engine knows them. It is the same map until a definition changes.
    pub fn known_tables(&self) -> Arc<catalog::Tables> {
        self.catalog.tables()
    }

    /// Like [`Engine::table`], but current at some moment during the call, even if other engines
    /// change tables.
    pub async fn current_table(&self, name: &TableName) -> Result<Arc<Table>> {
        let mut table = self.table(name).await?;
        while !self.is_current(&table).await? {
            table = self.refresh(&table).await?;
        }
        Ok(table)
    }

    /// The table that now has the name of `stale`, after a guard check has found `stale` outdated.
    pub async fn refresh(&self, stale: &Table) -> Result<Arc<Table>> {
        self.catalog.refresh(&*self.store, stale).await
    }

    /// The definition that replaces `table`, or `error` if none does: a request that does not fit
    /// the old definition may fit the new one.
    pub(crate) async fn refresh_after(&self, table: &Table, error: Error) -> Result<Arc<Table>> {
        match self.is_current(table).await? {
            true => Err(error),
            false => self.refresh(table).await,
        }
    }

    /// Replaces stale definitions, and returns whether there were any.
    pub(crate) async fn refresh_stale(&self, tables: &mut [Arc<Table>]) -> Result<bool> {
        if !self.is_shared() && !tables.iter().any(|table| table.is_invalid()) {
            return Ok(false);
        }
        let keys: Vec<Key> = tables.iter().map(|table| table.guard_key().clone()).collect();
        let versions = self.store.get_many(&keys).await?;
        let mut stale = false;
        for (table, version) in tables.iter_mut().zip(versions) {
            if table.check_guard(version.as_ref()) != GuardCheck::Current {
                *table = self.refresh(table).await?;
                stale = true;
            }
        }
        Ok(stale)
    }
}
