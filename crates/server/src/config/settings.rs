//! The settings that the server runs with: all sources merged, defaults filled in, contradictions
//! rejected.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing_subscriber::filter::{self, Targets};
use zenobe_api::Wording;
use zenobe_auth::{Credentials, CredentialsError};
use zenobe_backup::ship::ShipOptions;
use zenobe_database::{
    CacheOptions, Limits, Location, Namespace, ObjectStoreOptions, StreamOptions, ThroughputMode,
};
use zenobe_transfer::objects::ObjectLocation;

use super::environment::UnknownVariable;
use super::given::{Given, OptionSource};
use super::local::LocalMode;
use super::options::Options;
use super::values::{CredentialsSource, ListenAddress, LogFormat};
use crate::admin::{BackupPermission, MovePermission};
use crate::http::allowed_hosts_and_origins::{AllowedHost, CorsOrigin};
use crate::http::overload::Shedding;
use crate::outbound::Url;
use crate::test_control::{Rule, Rules};
use crate::triggers::TriggerDefinition;

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub listen: SocketAddr,
    pub location: Location,
    pub cache_size_bytes: usize,
    pub accept_damaged_log: bool,
    /// The name of this node, if it was given one.
    pub node_name: Option<String>,
    pub lease_period: Duration,
    pub clock_skew_max: Duration,
    /// The maximum lag of a standby that serves eventually consistent reads; `None` if none may.
    pub standby_lag_max: Option<Duration>,
    /// The caches for eventually consistent reads, if there are any.
    pub item_cache: Option<CacheOptions>,
    pub query_cache: Option<CacheOptions>,
    pub region: String,
    pub account: String,
    pub namespaces_from_credentials: bool,
    /// The access keys to verify signatures with; `None` accepts any.
    pub credentials: Option<Credentials>,
    /// Further values of `Host`, besides those that the server accepts by default.
    pub allowed_hosts: Vec<AllowedHost>,
    /// The origins of web pages that may call.
    pub cors_origins: Vec<CorsOrigin>,
    pub connections_max: usize,
    /// `None` depends on the peer.
    pub connections_per_peer_max: Option<usize>,
    /// The quotas of each account.
    pub limits: Limits,
    pub wording: Wording,
    /// What to do with requests that AWS would throttle.
    pub throughput: ThroughputMode,
    /// Whether to refuse PartiQL statements that would scan.
    pub refuse_scans: bool,
    pub restorable_lag: Duration,
    /// Where callers may move the server; `None` depends on who can call.
    pub allow_move_to: Option<Location>,
    /// Where callers may back up the server; `None` depends on who can call.
    pub allow_backup_to: Option<ObjectLocation>,
    /// Where triggers added by command may write files; `None` allows none.
    pub dead_letter_directory: Option<PathBuf>,
    /// Where imports read from.
    pub object_store: Option<ObjectStoreOptions>,
    /// Where the log is shipped to, and how.
    pub ship: Option<(ObjectLocation, ShipOptions)>,
    pub idle_timeout: Duration,
    pub stall_timeout: Duration,
    /// When to refuse requests because there are too many.
    pub shedding: Option<Shedding>,
    pub shutdown_timeout: Duration,
    /// How long to go on answering after the signal to stop.
    pub drain: Duration,
    pub streams: StreamOptions,
    /// Whether time moves only on request.
    pub driven_clock: bool,
    /// Set if tests control the server.
    pub test: Option<TestSettings>,
    /// How far the clock may jump before expiry pauses; `None` trusts every clock.
    pub clock_jump_ms_max: Option<u64>,
    pub triggers: Vec<TriggerDefinition>,
    /// How long CloudWatch's metrics are kept; 0 keeps none.
    pub metrics_retention_days: u32,
    /// How long the traffic of tables is kept for `zenobe cost`; 0 records none.
    pub cost_retention_days: u32,
    pub log: Targets,
    pub log_format: LogFormat,
    /// Longer requests are logged.
    pub slow_request: Option<Duration>,
    /// Where traces and metrics go.
    pub otlp_endpoint: Option<Url>,
    /// Set if the server replaces DynamoDB Local.
    pub local: Option<LocalMode>,
    /// Logged as warnings once logging is set up.
    pub unknown_variables: Vec<UnknownVariable>,
}

/// What tests may do from the start.
#[derive(Debug, Clone, PartialEq)]
pub struct TestSettings {
    pub faults: Vec<Rule>,
    pub seed: u64,
    /// Where requests are recorded.
    pub record: Option<PathBuf>,
}

impl TestSettings {
    pub fn rules(&self) -> Rules {
        Rules::new(self.seed, self.faults.clone())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("--memory and --data exclude each other; remove one of them")]
    MemoryAndData,
    #[error("--durability has no effect with --memory; remove one of them")]
    MemoryAndDurability,
    #[error("--store and --data exclude each other")]
    StoreAndData,
    #[error("--store and --memory exclude each other")]
    StoreAndMemory,
    #[error(
        "--durability is for a data directory; for a --store, set synchronous_commit in PostgreSQL"
    )]
    StoreAndDurability,
    #[error("--eventual-reads-from-standbys is for a --store; a data directory has no standbys")]
    StandbysWithoutStore,
    #[error("cannot read the credentials file {}: {error}", path.display())]
    CredentialsFile { path: PathBuf, error: std::io::Error },
    #[error(
        "every user of this machine can read or write the credentials file {} (mode {mode:04o}): \
         run `chmod 600` on it, or mount the secret with mode 0400",
        path.display()
    )]
    CredentialsFileOpen { path: PathBuf, mode: u32 },
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error(
        "other machines can reach {listen}, so the server needs credentials to verify signatures: \
         give --credentials, or --insecure-accept-any-credentials to let anyone read and write"
    )]
    Open { listen: SocketAddr },
    #[error(
        "--credentials and --insecure-accept-any-credentials exclude each other; remove one of them"
    )]
    CredentialsAndAcceptAny,
    #[error("--{option} needs --test-control, which says that tests may control this server")]
    WithoutTestControl { option: &'static str },
    #[error(
        "--test-control lets callers replace the whole database, and other machines can reach {listen}: \
         listen on a loopback address, or verify signatures with --credentials"
    )]
    TestControlOpen { listen: SocketAddr },
    #[error(
        "--test-control is for a database of one server, not for a --store that others may use"
    )]
    TestControlAndStore,
    #[error(
        "--table-capacity-units-max ({table}) is above --account-capacity-units-max ({account}), which all tables share: \
         lower the one or raise the other"
    )]
    TableAboveAccount { table: u64, account: u64 },
    #[error("the access key for the object store must be one line `id:secret`")]
    ObjectStoreCredentials,
    #[error("--s3-region and --s3-credentials have no effect without --s3-endpoint")]
    ObjectStoreEndpoint,
    #[error(
        "--ship-to ships a data directory (--data). A --store is backed up with PostgreSQL's own tools, such as pg_basebackup and archive_command"
    )]
    ShipWithoutDirectory,
    #[error(
        "--ship-to s3://… needs --s3-endpoint: `aws`, or the URL of a server that is compatible with S3"
    )]
    ShipWithoutEndpoint,
    #[error("`{log}` is not a log filter: {detail}")]
    LogFilter { log: String, detail: String },
}

impl Settings {
    pub fn namespace(&self) -> Namespace {
        Namespace { account: self.account.clone(), region: self.region.clone() }
    }

    /// Whether callers who must not know of each other share the server.
    pub fn has_tenants(&self) -> bool {
        self.credentials.is_some() && self.namespaces_from_credentials
    }

    /// The laxest throughput mode that a table may have. What an operator enforces on tenants is their quota.
    pub fn throughput_min(&self) -> ThroughputMode {
        match self.throughput {
            ThroughputMode::Enforce if self.has_tenants() => ThroughputMode::Enforce,
            _ => ThroughputMode::Off,
        }
    }

    /// Where callers may move the server. Whoever may move the server can read everything, make it connect or write anywhere,
    /// and choose where the data lives from then on.
    pub fn move_permission(&self) -> MovePermission {
        match &self.allow_move_to {
            Some(place) => MovePermission::To(place.clone()),
            None if self.is_for_one_user() => MovePermission::Anywhere,
            None => MovePermission::Nowhere,
        }
    }

    /// Where callers may back up the server. A backup reads everything, and is written with the server's own rights.
    pub fn backup_permission(&self) -> BackupPermission {
        match &self.allow_backup_to {
            Some(place) => BackupPermission::To(place.clone()),
            None if self.is_for_one_user() => BackupPermission::Anywhere,
            None => BackupPermission::Nowhere,
        }
    }

    fn is_for_one_user(&self) -> bool {
        self.listen.ip().is_loopback()
            && self.credentials.is_none()
            && !self.namespaces_from_credentials
    }

    /// The settings that the options result in.
    pub fn resolve(given: Given) -> Result<Settings, SettingsError> {
        let location = resolve_location(&given)?;
        let listen = resolve_listen(&given);
        let limits = resolve_limits(&given)?;
        let Given { options, triggers, unknown_variables, local, .. } = given;
        // DynamoDB Local accepts anybody from anywhere, and users of `zenobe local` expect the
        // same.
        let accept_any = options.insecure_accept_any_credentials
            || local.is_some() && options.credentials.is_none();
        let credentials = options.credentials.as_ref().map(read_credentials).transpose()?;
        match (&credentials, accept_any) {
            (Some(_), true) => return Err(SettingsError::CredentialsAndAcceptAny),
            (None, false) if !listen.ip().is_loopback() => {
                return Err(SettingsError::Open { listen });
            }
            _ => {}
        }
        let object_store = object_store(&options)?;
        let test = test_settings(&options, listen, &location)?;
        let ship = ship(&options, &location, object_store.is_some())?;
        let standby_lag_max = options
            .eventual_reads_from_standbys
            .then(|| Duration::from_millis(options.standby_max_lag_ms.into()));
        if standby_lag_max.is_some() && !matches!(location, Location::Postgres { .. }) {
            return Err(SettingsError::StandbysWithoutStore);
        }
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        Ok(Settings {
            listen,
            limits,
            object_store,
            ship,
            location,
            cache_size_bytes: options.cache_mb as usize * 1024 * 1024,
            accept_damaged_log: options.accept_damaged_log,
            streams: stream_options(&options),
            node_name: options.node_name,
            lease_period: seconds(options.lease_seconds),
            clock_skew_max: seconds(options.clock_skew_seconds),
            standby_lag_max,
            item_cache: cache_options(options.item_cache_mb, options.item_cache_ttl_ms),
            query_cache: cache_options(options.query_cache_mb, options.query_cache_ttl_ms),
            log: log_filter(&options.log)?,
            region: options.region,
            account: options.account,
            namespaces_from_credentials: options.namespaces_from_credentials,
            credentials,
            allowed_hosts: options.allowed_host,
            cors_origins: options.cors_origin,
            connections_max: options.max_connections as usize,
            connections_per_peer_max: options.max_connections_per_peer.map(|count| count as usize),
            wording: options.wording,
            throughput: options.throughput,
            refuse_scans: options.refuse_scans,
            restorable_lag: seconds(options.restorable_lag_seconds),
            allow_move_to: options.allow_move_to,
            allow_backup_to: options.allow_backup_to,
            dead_letter_directory: options.dead_letter_directory,
            idle_timeout: seconds(options.idle_timeout_seconds),
            stall_timeout: seconds(options.stall_timeout_seconds),
            shedding: (options.shed_after_ms > 0)
                .then(|| Shedding::after(Duration::from_millis(options.shed_after_ms.into()))),
            shutdown_timeout: seconds(options.shutdown_timeout_seconds),
            drain: seconds(options.drain_seconds),
            clock_jump_ms_max: match options.clock_jump_seconds {
                0 => None,
                seconds => Some(u64::from(seconds) * 1_000),
            },
            driven_clock: options.driven_clock,
            test,
            triggers,
            metrics_retention_days: options.metrics_retention_days,
            cost_retention_days: options.cost_retention_days,
            local,
            log_format: options.log_format,
            slow_request: options.slow_request_ms.map(|ms| Duration::from_millis(ms.into())),
            otlp_endpoint: options.otlp_endpoint,
            unknown_variables,
        })
    }
}

/// The strongest source that names a location decides. `--memory` overrides a data directory in the
/// configuration file, and `--memory=false` its `memory = true`, but one source cannot name two locations.
fn resolve_location(given: &Given) -> Result<Location, SettingsError> {
    let Options { memory, data, store, durability, .. } = &given.options;
    let [by_memory, by_data, by_store, by_durability] =
        ["memory", "data", "store", "durability"].map(|id| given.source(id));
    if let Some(url) = store {
        if by_data == by_store {
            return Err(SettingsError::StoreAndData);
        }
        if *memory && by_memory == by_store {
            return Err(SettingsError::StoreAndMemory);
        }
        if by_durability == by_store {
            return Err(SettingsError::StoreAndDurability);
        }
        if by_store > by_data && (!*memory || by_store > by_memory) {
            return Ok(Location::Postgres { url: url.clone() });
        }
    }
    let directory = || Location::Directory { path: data.clone(), durability: *durability };
    match memory {
        false => Ok(directory()),
        true if by_data > by_memory => Ok(directory()),
        true if by_data == by_memory => Err(SettingsError::MemoryAndData),
        true if by_durability == by_memory => Err(SettingsError::MemoryAndDurability),
        true => Ok(Location::Memory),
    }
}

/// A separate port wins unless a stronger source gives a whole address.
fn resolve_listen(given: &Given) -> SocketAddr {
    let ListenAddress(mut listen) = given.options.listen;
    if let Some(port) = given.options.port
        && given.source("port") >= given.source("listen")
    {
        listen.set_port(port);
    }
    listen
}

/// A table can't have more than its account. Where only the account's maximum is given, it is also the tables'.
fn resolve_limits(given: &Given) -> Result<Limits, SettingsError> {
    let account = given.options.account_capacity_units_max.into();
    let table = given.options.table_capacity_units_max.into();
    let is_given = given.source("table_capacity_units_max") > OptionSource::Default;
    if table > account && is_given {
        return Err(SettingsError::TableAboveAccount { table, account });
    }
    Ok(Limits {
        tables_max: given.options.max_tables.into(),
        table_capacity_units_max: table.min(account),
        account_capacity_units_max: account,
        account_read_units_per_second: given.options.account_read_units_per_second.map(u64::from),
        account_write_units_per_second: given.options.account_write_units_per_second.map(u64::from),
        ..Limits::default()
    })
}

/// `None` without memory for it.
fn cache_options(size_mb: u32, time_to_live_ms: u32) -> Option<CacheOptions> {
    (size_mb > 0).then(|| CacheOptions {
        size_bytes_max: size_mb as usize * 1024 * 1024,
        time_to_live_ms: time_to_live_ms.into(),
    })
}

fn stream_options(options: &Options) -> StreamOptions {
    const HOUR_MS: u64 = 60 * 60 * 1_000;
    StreamOptions {
        shards: options.stream_shards,
        shard_rollover_ms: u64::from(options.stream_rollover_seconds) * 1_000,
        shard_records_max: options.stream_shard_records.map(u64::from),
        retention_ms: u64::from(options.stream_retention_hours) * HOUR_MS,
    }
}

fn object_store(options: &Options) -> Result<Option<ObjectStoreOptions>, SettingsError> {
    let Options { s3_endpoint, s3_region, s3_credentials, .. } = options;
    let Some(endpoint) = s3_endpoint.clone() else {
        return match s3_region.is_some() || s3_credentials.is_some() {
            true => Err(SettingsError::ObjectStoreEndpoint),
            false => Ok(None),
        };
    };
    let read = |source: &CredentialsSource| -> Result<(String, String), SettingsError> {
        let text = read_secret(source)?;
        let key = text.trim().split_once(':').filter(|(_, secret)| !secret.contains(['\n', ',']));
        let (id, secret) = key.ok_or(SettingsError::ObjectStoreCredentials)?;
        Ok((id.trim().to_owned(), secret.trim().to_owned()))
    };
    let credentials = s3_credentials.as_ref().map(read).transpose()?;
    Ok(Some(ObjectStoreOptions { endpoint, region: s3_region.clone(), credentials }))
}

/// A test may replace the whole database. So the server must have been told, and only this machine
/// or callers with a verified signature may reach it.
fn test_settings(
    options: &Options,
    listen: SocketAddr,
    location: &Location,
) -> Result<Option<TestSettings>, SettingsError> {
    let Options { test_control, fault, fault_seed, record, credentials, .. } = options;
    let without = |option| Err(SettingsError::WithoutTestControl { option });
    match test_control {
        false if !fault.is_empty() => without("fault"),
        false if record.is_some() => without("record"),
        false => Ok(None),
        true if matches!(location, Location::Postgres { .. }) => {
            Err(SettingsError::TestControlAndStore)
        }
        true if !listen.ip().is_loopback() && credentials.is_none() => {
            Err(SettingsError::TestControlOpen { listen })
        }
        true => {
            let (faults, record) = (fault.clone(), record.clone());
            Ok(Some(TestSettings { faults, seed: *fault_seed, record }))
        }
    }
}

fn ship(
    options: &Options,
    location: &Location,
    has_object_store: bool,
) -> Result<Option<(ObjectLocation, ShipOptions)>, SettingsError> {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let Some(to) = &options.ship_to else { return Ok(None) };
    if !matches!(location, Location::Directory { .. }) {
        return Err(SettingsError::ShipWithoutDirectory);
    }
    if matches!(to, ObjectLocation::Objects { .. }) && !has_object_store {
        return Err(SettingsError::ShipWithoutEndpoint);
    }
    let ship = ShipOptions {
        snapshot_interval: HOUR * options.ship_snapshot_hours,
        retention: HOUR * 24 * options.ship_retention_days,
        ..ShipOptions::default()
    };
    Ok(Some((to.clone(), ship)))
}

fn read_credentials(source: &CredentialsSource) -> Result<Credentials, SettingsError> {
    Ok(Credentials::parse(&read_secret(source)?)?)
}

/// The text of a secret, which is given itself or in a file that other users may neither read nor write.
fn read_secret(source: &CredentialsSource) -> Result<String, SettingsError> {
    match source {
        CredentialsSource::Inline(text) => Ok(text.clone()),
        CredentialsSource::File(path) => {
            let fault = |error| SettingsError::CredentialsFile { path: path.clone(), error };
            let mode = permissions(path).map_err(fault)?;
            if mode & OTHERS_READ_OR_WRITE != 0 {
                return Err(SettingsError::CredentialsFileOpen { path: path.clone(), mode });
            }
            std::fs::read_to_string(path).map_err(fault)
        }
    }
}

/// The bits of a file's mode.
const OTHERS_READ_OR_WRITE: u32 = 0o006;

fn permissions(path: &Path) -> std::io::Result<u32> {
    let metadata = std::fs::metadata(path)?;
    Ok(metadata.permissions().mode() & 0o7777)
}

fn log_filter(log: &str) -> Result<Targets, SettingsError> {
    // An empty part would mean errors only, and override the parts before it.
    let given = log.split(',').filter(|part| !part.trim().is_empty());
    // The object store's client reports every attempt of every request. What comes later overrides this.
    let parts: Vec<&str> = std::iter::once("object_store=warn").chain(given).collect();
    parts.join(",").parse().map_err(|error: filter::ParseError| SettingsError::LogFilter {
        detail: error.to_string(),
        log: log.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use zenobe_database::{Durability, ObjectStoreEndpoint};
    use zenobe_testing::TemporaryDirectory;

    use super::*;
    use crate::config::GivenError;

    fn given(flags: &str, file: &str) -> Result<Given, GivenError> {
        let directory = TemporaryDirectory::new("settings");
        let path = directory.path().join("zenobe.toml");
        std::fs::write(&path, file).unwrap();
        let mut arguments: Vec<OsString> = vec!["zenobe".into(), "serve".into()];
        arguments.extend(["--config".into(), path.into_os_string()]);
        arguments.extend(flags.split_whitespace().map(OsString::from));
        let command = crate::cli::command();
        let matches = command.clone().try_get_matches_from(&arguments)?;
        Given::load(&command, &arguments, &matches)
    }

    fn resolve(flags: &str, file: &str) -> Result<Settings, SettingsError> {
        Settings::resolve(given(flags, file).unwrap())
    }

    fn refusal(flags: &str, file: &str) -> String {
        resolve(flags, file).expect_err(flags).to_string()
    }

    fn location(flags: &str, file: &str) -> Location {
        resolve(flags, file).unwrap().location
    }

    fn directory(path: &str, durability: Durability) -> Location {
        Location::Directory { path: PathBuf::from(path), durability }
    }

    #[test]
    fn the_defaults_are_a_durable_store_on_loopback() {
        let settings = resolve("", "").unwrap();
        assert_eq!(settings.listen.to_string(), "127.0.0.1:8000");
        assert_eq!(settings.location, directory("./zenobe-data", Durability::Sync));
        assert_eq!(settings.credentials, None);
        assert_eq!((settings.region.as_str(), settings.connections_max), ("us-east-1", 4096));
        assert_eq!(settings.streams, StreamOptions::default());
    }

    #[test]
    fn flags_win_over_the_file() {
        assert_eq!(resolve("--region flag", "region = 'file'").unwrap().region, "flag");
        assert_eq!(resolve("", "region = 'file'").unwrap().region, "file");
        let wrong = given("--region flag", "region = ''").unwrap_err().to_string();
        assert!(wrong.contains("zenobe.toml:1:1: region: "), "{wrong}");
    }

    #[test]
    fn the_strongest_source_chooses_the_location() {
        assert_eq!(location("--memory", "data = 'x'"), Location::Memory);
        let file = "memory = true\ndurability = 'os'";
        assert_eq!(location("--data x", file), directory("x", Durability::Os));
        assert_eq!(location("--data x", "memory = true"), directory("x", Durability::Sync));
        assert_eq!(
            refusal("", "memory = true\ndata = 'x'"),
            "--memory and --data exclude each other; remove one of them"
        );
        assert_eq!(
            refusal("", file),
            "--durability has no effect with --memory; remove one of them"
        );
    }

    #[test]
    fn a_store_is_a_location_of_its_own() {
        let store = || Location::Postgres { url: "postgres://a,b/db".parse().unwrap() };
        let file = "store = 'postgres://a,b/db'";
        assert_eq!(location("--store postgres://a,b/db", ""), store());
        assert_eq!(location("", file), store());
        assert_eq!(location("--store postgres://a,b/db", "memory = true\ndata = 'x'"), store());
        assert_eq!(location("--memory", file), Location::Memory);
        assert_eq!(location("--data x", file), directory("x", Durability::Sync));
        for (other, name) in [("data = 'x'", "--data"), ("memory = true", "--memory")] {
            let message = refusal("", &format!("{file}\n{other}"));
            assert_eq!(message, format!("--store and {name} exclude each other"));
        }
        assert!(refusal("", &format!("{file}\ndurability = 'os'")).contains("PostgreSQL"));
        assert!(given("--store mysql://a", "").is_err());
    }

    #[test]
    fn a_node_has_a_name_a_lease_and_a_clock() {
        let of = |flags, file| {
            let Settings { node_name, lease_period, clock_skew_max, .. } =
                resolve(flags, file).unwrap();
            (node_name, lease_period.as_secs(), clock_skew_max.as_secs())
        };
        assert_eq!(of("", ""), (None, 10, 600));
        let file = "node-name = 'a 1'\nlease-seconds = 3\nclock-skew-seconds = 0";
        assert_eq!(of("", file), (Some("a 1".to_owned()), 3, 0));
        assert_eq!(of("--node-name b --lease-seconds 4", file), (Some("b".to_owned()), 4, 0));
        assert!(given("--lease-seconds 0", "").is_err());
        assert!(given("", "node-name = ''").is_err());
    }

    #[test]
    fn a_table_has_no_more_than_its_account() {
        let of = |flags, file| {
            let limits = resolve(flags, file).unwrap().limits;
            (limits.table_capacity_units_max, limits.account_capacity_units_max)
        };
        assert_eq!(of("", ""), (40_000, 80_000));
        assert_eq!(of("--table-capacity-units-max 50000", ""), (50_000, 80_000));
        let file = "account-capacity-units-max = 1000";
        assert_eq!(of("", file), (1_000, 1_000));
        assert_eq!(of("--table-capacity-units-max 10", file), (10, 1_000));
        let message = refusal("--table-capacity-units-max 1001", file);
        assert!(message.starts_with("--table-capacity-units-max (1001) is above"), "{message}");
        assert!(given("--account-capacity-units-max 0", "").is_err());
    }

    #[test]
    fn tenants_can_not_loosen_what_is_enforced() {
        let directory = TemporaryDirectory::new("throughput-of-tenants");
        let path = directory.path().join("keys");
        std::fs::write(&path, "AKID:secret").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let min = |flags: &str| resolve(flags, "").unwrap().throughput_min();
        let keys = format!("--credentials {}", path.display());
        let tenants = format!("{keys} --namespaces-from-credentials");
        assert_eq!(min(&format!("{tenants} --throughput enforce")), ThroughputMode::Enforce);
        assert_eq!(min(&tenants), ThroughputMode::Off);
        assert_eq!(min(&format!("{keys} --throughput enforce")), ThroughputMode::Off);
        let unverified = "--namespaces-from-credentials --throughput enforce";
        assert_eq!(min(unverified), ThroughputMode::Off);
    }

    #[test]
    fn standbys_are_read_if_that_is_asked_for() {
        let of = |flags| resolve(flags, "").unwrap().standby_lag_max;
        let store = "--store postgres://a,b/db";
        assert_eq!(of(store), None);
        let asked = format!("{store} --eventual-reads-from-standbys");
        assert_eq!(of(&asked), Some(Duration::from_secs(1)));
        let near = format!("{asked} --standby-max-lag-ms 50");
        assert_eq!(of(&near), Some(Duration::from_millis(50)));
        assert!(refusal("--eventual-reads-from-standbys", "").contains("--store"));
    }

    #[test]
    fn a_stronger_source_switches_memory_off() {
        let default = directory("./zenobe-data", Durability::Sync);
        assert_eq!(location("--memory=false", "memory = true"), default);
        assert_eq!(location("--memory", "memory = false"), Location::Memory);
        assert_eq!(location("", "memory = true"), Location::Memory);
        let file = "memory = true\ndata = 'x'\ndurability = 'os'";
        assert_eq!(location("--memory=no", file), directory("x", Durability::Os));
    }

    #[test]
    fn a_port_overrides_that_of_the_address_unless_a_stronger_source_gives_a_whole_one() {
        let listen = |flags, file| resolve(flags, file).unwrap().listen.to_string();
        assert_eq!(listen("--port 9000", ""), "127.0.0.1:9000");
        assert_eq!(listen("--port 9000 --listen [::1]:1", ""), "[::1]:9000");
        assert_eq!(listen("--port 9000", "listen = '[::1]:1'"), "[::1]:9000");
        assert_eq!(listen("--listen :9001", "port = 9000"), "127.0.0.1:9001");
    }

    #[test]
    fn beyond_loopback_credentials_are_required() {
        let open = "listen = '0.0.0.0:8000'";
        assert!(refusal("", open).starts_with("other machines can reach 0.0.0.0:8000"));
        let accepted = resolve("--insecure-accept-any-credentials", open).unwrap();
        assert_eq!(accepted.credentials, None);
        assert!(resolve("--listen [::1]:0", "").is_ok());
        assert!(refusal("--credentials /absent", "").contains("/absent"));
    }

    #[test]
    fn lists_are_repeated_separated_by_commas_or_written_as_lists() {
        let expected: Vec<AllowedHost> = ["a", "*.b"].map(|host| host.parse().unwrap()).to_vec();
        let hosts = |flags, file| resolve(flags, file).unwrap().allowed_hosts;
        assert_eq!(hosts("--allowed-host a --allowed-host *.b", ""), expected);
        assert_eq!(hosts("--allowed-host a,*.b", ""), expected);
        assert_eq!(hosts("", "allowed-host = ['a', '*.b']"), expected);
        assert_eq!(hosts("", "allowed-host = 'a, *.b'"), expected);
        assert_eq!(hosts("--allowed-host c", "allowed-host = ['a', '*.b']").len(), 1);
    }

    #[test]
    fn credentials_that_every_user_can_read_are_rejected() {
        let directory = TemporaryDirectory::new("credentials");
        let path = directory.path().join("keys");
        std::fs::write(&path, "AKID:secret").unwrap();
        let resolve = |mode: u32| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            resolve(&format!("--credentials {}", path.display()), "")
        };
        for mode in [0o600, 0o400, 0o640] {
            assert_eq!(resolve(mode).unwrap().credentials.unwrap().len(), 1);
        }
        for mode in [0o644, 0o602] {
            let message = resolve(mode).unwrap_err().to_string();
            let expected = format!(
                "every user of this machine can read or write the credentials file {} (mode {mode:04o}): \
                 run `chmod 600` on it",
                path.display()
            );
            assert!(message.starts_with(&expected), "{message}");
        }
    }

    #[test]
    fn the_object_store_is_a_server_or_a_directory() {
        let endpoint = |flags| resolve(flags, "").unwrap().object_store.unwrap().endpoint;
        assert_eq!(endpoint("--s3-endpoint aws"), ObjectStoreEndpoint::Aws);
        let directory = endpoint("--s3-endpoint file:///var/buckets");
        assert_eq!(directory, ObjectStoreEndpoint::Directory("/var/buckets".into()));
        let url = endpoint("--s3-endpoint http://127.0.0.1:9000");
        assert_eq!(url, ObjectStoreEndpoint::Url("http://127.0.0.1:9000".into()));
        assert_eq!(resolve("", "").unwrap().object_store, None);
        assert!(given("--s3-endpoint ftp://x", "").is_err());
        assert!(given("--s3-endpoint file://relative", "").is_err());
        assert!(refusal("--s3-region eu-west-1", "").contains("without --s3-endpoint"));
    }

    #[test]
    fn a_data_directory_can_be_shipped() {
        let (to, options) =
            resolve("--ship-to file:///backups --ship-retention-days 2", "").unwrap().ship.unwrap();
        assert_eq!(to, ObjectLocation::Path("/backups".into()));
        assert_eq!(options.retention, Duration::from_secs(2 * 24 * 60 * 60));
        assert_eq!(options.snapshot_interval, ShipOptions::default().snapshot_interval);
        assert!(resolve("--ship-to s3://b/p --s3-endpoint aws", "").unwrap().ship.is_some());
        assert!(refusal("--ship-to s3://b/p", "").contains("--s3-endpoint"));
        assert!(refusal("--ship-to /x --memory", "").contains("a data directory"));
        assert!(refusal("--ship-to /x --store postgres://a/db", "").contains("pg_basebackup"));
        assert!(given("--ship-to gs://x", "").is_err());
        assert!(given("--ship-snapshot-hours 0", "").is_err());
    }

    #[test]
    fn log_filters_are_checked() {
        assert!(refusal("--log a=b=c", "").contains("is not a log filter"));
        let with_empty_part = resolve("--log info,", "").unwrap().log;
        assert_eq!(with_empty_part, resolve("--log info", "").unwrap().log);
    }
}
