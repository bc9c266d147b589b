//! The options for opening a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use zenobe_api::Wording;
use zenobe_engine::clock::{Clock, SystemClock};
use zenobe_engine::options::{Limits, StreamOptions};
use zenobe_engine::schema::Namespace;
use zenobe_engine::{CacheOptions, EngineOptions, Lateness, ThroughputMode};
use zenobe_store_embedded::Durability;
use zenobe_transfer::objects::ObjectStoreOptions;

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
    pub index_status_delay: Duration,
    /// Whether to refuse PartiQL statements that would scan.
    pub refuse_scans: bool,
    /// How far LatestRestorableDateTime is behind the present. On DynamoDB it is five minutes.
    pub restorable_lag: Duration,
    /// Where imports read from and exports write to; without it there are none.
    pub object_store: Option<ObjectStoreOptions>,
    /// What to do with requests that DynamoDB would throttle, on tables that don't say it themselves.
    pub throughput: ThroughputMode,
    /// The laxest mode that a table may have, whatever its tag says.
    pub throughput_min: ThroughputMode,
    /// The clock for expiry, streams and timestamps. Tests use a `ManualClock`.
    pub clock: Arc<dyn Clock>,
    /// After a longer jump of the clock nothing expires until
    /// [`zenobe_engine::Engine::confirm_clock`]; `None` trusts every clock.
    pub clock_jump_ms_max: Option<u64>,
    /// A cache for eventually consistent GetItem and BatchGetItem. Only what this process writes shows in
    /// it before an entry's time is over.
    pub item_cache: Option<CacheOptions>,
    /// A cache for eventually consistent Query and Scan. What is written shows when an entry's time is
    /// over.
    pub query_cache: Option<CacheOptions>,
    /// What a test asks to be late; `None` outside of tests.
    pub lateness: Option<Arc<dyn Lateness>>,
    /// What concerns the other processes on the same store, if it can have any.
    pub node: NodeOptions,
}

/// A process among those that share a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOptions {
    /// The name that operators use for it.
    pub name: String,
    /// How long it may be silent before another takes over its background work.
    pub lease_period: Duration,
    /// How far the clocks of the processes may differ. Nothing counts as past before all of them
    /// agree.
    pub clock_skew_max: Duration,
    /// The maximum lag of a standby that serves eventually consistent reads. `None` sends them all to
    /// the primary.
    pub standby_lag_max: Option<Duration>,
}

impl Default for NodeOptions {
    fn default() -> NodeOptions {
        let EngineOptions { node_name, lease_period, clock_skew_ms_max, .. } =
            EngineOptions::default();
        let clock_skew_max = Duration::from_millis(clock_skew_ms_max);
        NodeOptions { name: node_name, lease_period, clock_skew_max, standby_lag_max: None }
    }
}

/// Where the data is, and how durable writes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    Memory,
    Directory {
        path: PathBuf,
        durability: Durability,
    },
    /// A PostgreSQL that any number of processes may share, by its URL.
    #[cfg(feature = "postgres")]
    Postgres {
        url: PostgresUrl,
    },
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
            index_status_delay: self.index_status_delay,
            restorable_lag: self.restorable_lag,
            limits: self.limits,
            throughput: self.throughput,
            throughput_min: self.throughput_min,
            clock_jump_ms_max: self.clock_jump_ms_max,
            lateness: self.lateness.clone(),
            node_name: self.node.name.clone(),
            lease_period: self.node.lease_period,
            clock_skew_ms_max: self.node.clock_skew_max.as_millis() as u64,
            item_cache: self.item_cache,
            query_cache: self.query_cache,
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
            index_status_delay: Duration::ZERO,
            refuse_scans: false,
            restorable_lag: Duration::ZERO,
            object_store: None,
            throughput: ThroughputMode::default(),
            throughput_min: ThroughputMode::Off,
            clock: Arc::new(SystemClock),
            clock_jump_ms_max: EngineOptions::default().clock_jump_ms_max,
            item_cache: None,
            query_cache: None,
            lateness: None,
            node: NodeOptions::default(),
        }
    }
}

/// `postgres://user:password@host,host/database?parameters`. Shown without its password.
#[cfg(feature = "postgres")]
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

#[cfg(feature = "postgres")]
impl PostgresUrl {
    pub fn with_password(&self) -> &str {
        &self.0
    }
}

#[cfg(feature = "postgres")]
impl std::str::FromStr for PostgresUrl {
    type Err = String;

    /// Checks the scheme only; the store checks the rest.
    fn from_str(text: &str) -> Result<PostgresUrl, String> {
        match ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            true => Ok(PostgresUrl(text.to_owned())),
            false => Err("expected a URL such as postgres://user@host/database".to_owned()),
        }
    }
}

#[cfg(feature = "postgres")]
impl std::fmt::Display for PostgresUrl {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or_default();
        // A password may hold anything, also a `?`, and may also stand among the parameters.
        let (login, place) = match rest.rsplit_once('@') {
            // What follows the `@` may then be the rest of a password.
            Some((login, _)) if has_parameters(login) => (Some(login), "…"),
            Some((login, place)) => (Some(login), place),
            None => (None, rest),
        };
        let place = place.split('?').next().unwrap_or_default();
        let user = login.and_then(|login| login.split([':', '/', '?']).next());
        match user {
            Some(user) => write!(out, "{scheme}://{user}@{place}"),
            None => write!(out, "{scheme}://{place}"),
        }
    }
}

#[cfg(feature = "postgres")]
fn has_parameters(text: &str) -> bool {
    text.split_once('?').is_some_and(|(_, parameters)| parameters.contains('='))
}

#[cfg(feature = "postgres")]
impl std::fmt::Debug for PostgresUrl {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "PostgresUrl({self})")
    }
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::PostgresUrl;

    #[test]
    fn a_password_is_not_shown() {
        for (text, shown) in [
            (
                "postgres://zenobe:secret@a,b:5433/db?sslmode=require",
                "postgres://zenobe@a,b:5433/db",
            ),
            ("postgres://a/db?user=zenobe&password=secret", "postgres://a/db"),
            ("postgres://zenobe:my?secret@a/db?sslmode=require", "postgres://zenobe@a/db"),
            ("postgres://zenobe:my@secret@a/db", "postgres://zenobe@a/db"),
            ("postgres://a/db?password=my@secret", "postgres://a@…"),
            ("postgres://a:5432?user=zenobe&password=my@secret", "postgres://a@…"),
            ("postgres://zenobe:a=b@c/db", "postgres://zenobe@c/db"),
        ] {
            let url: PostgresUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), shown);
            assert!(!format!("{url:?}").contains("secret"));
            assert_eq!(url.with_password(), text);
        }
        assert!("mysql://a".parse::<PostgresUrl>().is_err());
    }
}
