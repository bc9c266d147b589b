//! DynamoDB's semantics over an ordered store: tables, items, indexes, transactions, streams.
//!
//! **Invariant:** no JSON, no HTTP and no client-facing text here. Commands ([`command`]), outcomes
//! and errors ([`error`]) are typed, so the same engine can run embedded in a Rust program.
//!
//! **Invariant:** only `change` writes items and index entries.

mod background;
mod batch;
mod capacity;
pub mod catalog;
mod change;
pub mod clock;
pub mod command;
pub mod consumers;
pub mod error;
mod health;
mod indexes;
mod keys;
pub mod keyspace;
pub mod options;
mod pace;
mod random;
mod read;
mod row;
pub mod schema;
pub mod streams;
mod tables;
mod timeline;
mod transactions;
mod ttl;
mod write;

use std::sync::Arc;

use zenobe_store::Store;

use crate::background::Background;
use crate::catalog::{Catalog, Table};
use crate::clock::Clock;
use crate::command::TableName;
use crate::error::Result;
use crate::indexes::StatusHold;
use crate::random::Random;
use crate::streams::Announcements;
use crate::timeline::Timeline;

pub use capacity::write_halves;
pub use change::Inconsistency;
pub use options::{EngineOptions, Limits, StreamOptions};
pub use tables::TableUpdate;
pub use timeline::ClockStatus;

/// A database: one store, with DynamoDB's semantics on top.
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timeline: Timeline,
    pub(crate) random: Random,
    pub(crate) limits: Limits,
    pub(crate) shared_store: bool,
    pub(crate) catalog: Catalog,
    pub(crate) background: Background,
    pub(crate) status_hold: StatusHold,
    pub(crate) streams: StreamOptions,
    pub(crate) announcements: Announcements,
}

impl Engine {
    /// Opens the database in `store`. [`Engine::run_background`] continues work that an earlier
    /// process left unfinished.
    pub async fn open(store: Arc<dyn Store>, options: EngineOptions) -> Result<Arc<Engine>> {
        let snapshot = store.snapshot();
        let catalog = Catalog::load(&*snapshot).await?;
        let clock = Arc::clone(&options.clock);
        let timeline = Timeline::open(&*snapshot, clock, options.clock_jump_ms_max).await?;
        Ok(Arc::new(Engine {
            store,
            clock: options.clock,
            timeline,
            random: Random::new(options.random_seed),
            limits: options.limits,
            shared_store: options.shared_store,
            catalog,
            background: Background::default(),
            status_hold: StatusHold::new(options.index_status_hold),
            streams: options.streams,
            announcements: Announcements::default(),
        }))
    }

    /// The store below, for its statistics and for operators' tools.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
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

    /// The table that now has the name of `stale`, after a guard check has found `stale` outdated.
    pub async fn refresh(&self, stale: &Table) -> Result<Arc<Table>> {
        self.catalog.refresh(&*self.store, stale).await
    }
}
