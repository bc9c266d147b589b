//! The options for opening a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use zenobe_api::Wording;
use zenobe_engine::EngineOptions;
use zenobe_engine::clock::{Clock, SystemClock};
use zenobe_engine::options::{Limits, StreamOptions};
use zenobe_engine::schema::Namespace;
use zenobe_store_embedded::Durability;

/// The defaults are those of `zenobe serve --memory`.
#[derive(Clone)]
pub struct Options {
    pub location: Location,
    /// Memory for cached data. An in-memory database has no cache.
    pub cache_size_bytes: usize,
    /// Opens a database whose log is damaged. Acknowledged writes after the damage are lost.
    pub accept_log_damage: bool,
    /// The account and region of the tables, as in their ARNs.
    pub namespace: Namespace,
    pub limits: Limits,
    pub streams: StreamOptions,
    /// Which error texts to use where DynamoDB has two.
    pub wording: Wording,
    /// How long an index that is added or deleted keeps each status, for testing programs that wait
    /// for it.
    pub index_status_hold: Duration,
    /// Whether to reject PartiQL statements that would scan.
    pub refuse_scans: bool,
    /// The clock for expiry, streams and timestamps. Tests use a `ManualClock`.
    pub clock: Arc<dyn Clock>,
    /// After a longer jump of the clock nothing expires until
    /// [`zenobe_engine::Engine::confirm_clock`]; `None` trusts every clock.
    pub clock_jump_ms_max: Option<u64>,
}

/// Where the data is, and how durable writes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    Memory,
    Directory { path: PathBuf, durability: Durability },
}

impl Options {
    /// A directory, with writes that survive power loss.
    pub fn directory(path: impl AsRef<Path>) -> Options {
        let (path, durability) = (path.as_ref().to_owned(), Durability::Sync);
        Options { location: Location::Directory { path, durability }, ..Options::default() }
    }

    pub(crate) fn engine_options(&self) -> EngineOptions {
        EngineOptions {
            clock: self.clock.clone(),
            streams: self.streams,
            index_status_hold: self.index_status_hold,
            limits: self.limits,
            clock_jump_ms_max: self.clock_jump_ms_max,
            ..EngineOptions::default()
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            location: Location::Memory,
            cache_size_bytes: zenobe_store_embedded::Options::default().cache_bytes,
            accept_log_damage: false,
            namespace: Namespace { account: "000000000000".into(), region: "us-east-1".into() },
            limits: Limits::default(),
            streams: StreamOptions::default(),
            wording: Wording::default(),
            index_status_hold: Duration::ZERO,
            refuse_scans: false,
            clock: Arc::new(SystemClock),
            clock_jump_ms_max: EngineOptions::default().clock_jump_ms_max,
        }
    }
}
