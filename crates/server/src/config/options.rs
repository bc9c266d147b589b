//! Every option of the server, each defined once: its flag, its environment variable, its key in a
//! configuration file (the flag without `--`), its default and its help.
//!
//! The help, the shell completions, the man pages and docs/configuration.md are generated from here.

use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use zenobe_database::{
    Durability, Limits, Location, ObjectStoreEndpoint, PostgresUrl, ThroughputMode, Wording,
};
use zenobe_transfer::objects::ObjectLocation;

use super::values::{
    CredentialsSource, ListenAddress, LogFormat, account, at_least_one, durability_parser,
    node_name, region, throughput_parser, trimmed, wording_parser,
};
use crate::commands::parse_place;
use crate::http::allowed_hosts_and_origins::{AllowedHost, CorsOrigin};
use crate::outbound::Url;
use crate::test_control::Rule;

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Address to listen on; a port alone means 127.0.0.1
    #[arg(
        long,
        env = "ZENOBE_LISTEN",
        default_value = "127.0.0.1:8000",
        value_name = "ADDRESS:PORT",
        help_heading = NETWORK
    )]
    pub listen: ListenAddress,
    /// Port to listen on, instead of the one in --listen; 0 picks a free one
    // No variable: for a service of that name Kubernetes sets ZENOBE_PORT to a URL.
    #[arg(long, value_name = "PORT", help_heading = NETWORK)]
    pub port: Option<u16>,
    /// Maximum number of connections; further ones wait
    #[arg(
        long,
        env = "ZENOBE_MAX_CONNECTIONS",
        default_value = "4096",
        value_parser = at_least_one,
        value_name = "COUNT",
        help_heading = NETWORK
    )]
    pub max_connections: u32,
    /// Maximum number of connections per client address; further ones are closed. If not set, half of
    /// --max-connections, and no limit for this machine
    #[arg(
        long,
        env = "ZENOBE_MAX_CONNECTIONS_PER_PEER",
        value_parser = at_least_one,
        value_name = "COUNT",
        help_heading = NETWORK
    )]
    pub max_connections_per_peer: Option<u32>,
    /// Seconds after which a connection without a complete request head is closed
    #[arg(
        long,
        env = "ZENOBE_IDLE_TIMEOUT_SECONDS",
        default_value = "60",
        value_parser = at_least_one,
        value_name = "SECONDS",
        help_heading = NETWORK
    )]
    pub idle_timeout_seconds: u32,
    /// Seconds that a client may stall while it sends a body or reads an answer
    #[arg(
        long,
        env = "ZENOBE_STALL_TIMEOUT_SECONDS",
        default_value = "30",
        value_parser = at_least_one,
        value_name = "SECONDS",
        help_heading = NETWORK
    )]
    pub stall_timeout_seconds: u32,
    /// Milliseconds that requests may wait on an overloaded server before it answers some with ThrottlingException; 0
    /// lets all of them wait
    #[arg(
        long,
        env = "ZENOBE_SHED_AFTER_MS",
        default_value = "1",
        value_name = "MILLISECONDS",
        help_heading = NETWORK
    )]
    pub shed_after_ms: u32,
    /// Seconds that running requests get to finish when the server stops
    #[arg(
        long,
        env = "ZENOBE_SHUTDOWN_TIMEOUT_SECONDS",
        default_value = "10",
        value_parser = at_least_one,
        value_name = "SECONDS",
        help_heading = NETWORK
    )]
    pub shutdown_timeout_seconds: u32,
    /// Seconds to keep serving after a stop signal while reporting not ready. Choose more than your load balancer needs to
    /// notice, and no client gets an error
    #[arg(
        long,
        env = "ZENOBE_DRAIN_SECONDS",
        default_value = "0",
        value_name = "SECONDS",
        help_heading = NETWORK
    )]
    pub drain_seconds: u32,

    /// Data directory, created if missing
    #[arg(
        long,
        env = "ZENOBE_DATA",
        default_value = "./zenobe-data",
        value_name = "DIRECTORY",
        help_heading = STORAGE
    )]
    pub data: PathBuf,
    /// Keep everything in memory; nothing outlives the process
    #[arg(
        long,
        env = "ZENOBE_MEMORY",
        default_value = "false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = BoolishValueParser::new(),
        value_name = "BOOL",
        help_heading = STORAGE
    )]
    pub memory: bool,
    /// URL of a PostgreSQL database that holds the data instead of the directory, and that any number of servers can share,
    /// such as postgres://zenobe@db1,db2,db3/zenobe. The variable keeps a password off the command line
    #[arg(long, env = "ZENOBE_STORE", value_name = "URL", help_heading = STORAGE)]
    pub store: Option<PostgresUrl>,
    /// Directory or PostgreSQL URL to which callers may move the server while it runs (`zenobe move --endpoint`); they need not know
    /// its password. If not set, they may move a server for one user (on a loopback address, without --credentials and
    /// --namespaces-from-credentials) anywhere, and any other server nowhere
    #[arg(
        long,
        env = "ZENOBE_ALLOW_MOVE_TO",
        value_parser = parse_place,
        value_name = "STORE",
        help_heading = STORAGE
    )]
    pub allow_move_to: Option<Location>,
    /// Place to which callers may back up the server (`zenobe backup`): s3://BUCKET/PREFIX, file:///DIRECTORY or a path. If not set,
    /// they may back up a server for one user (on a loopback address, without --credentials and --namespaces-from-credentials)
    /// anywhere, and any other server nowhere
    #[arg(long, env = "ZENOBE_ALLOW_BACKUP_TO", value_name = "PLACE", help_heading = STORAGE)]
    pub allow_backup_to: Option<ObjectLocation>,
    /// What an acknowledged write survives
    #[arg(
        long,
        env = "ZENOBE_DURABILITY",
        default_value = "sync",
        value_parser = durability_parser(),
        value_name = "MODE",
        help_heading = STORAGE
    )]
    pub durability: Durability,
    /// Memory for cached data, in MiB
    #[arg(
        long,
        env = "ZENOBE_CACHE_MB",
        default_value = "384",
        value_parser = at_least_one,
        value_name = "MIB",
        help_heading = STORAGE
    )]
    pub cache_mb: u32,
    /// Start once with a damaged log, and lose the acknowledged writes after the damage
    #[arg(
        long,
        env = "ZENOBE_ACCEPT_DAMAGED_LOG",
        default_value = "false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = BoolishValueParser::new(),
        value_name = "BOOL",
        help_heading = STORAGE
    )]
    pub accept_damaged_log: bool,

    /// Name of this server among those on the same --store, for operators. The default is the machine's name and the port
    #[arg(
        long,
        env = "ZENOBE_NODE_NAME",
        value_parser = node_name,
        value_name = "NAME",
        help_heading = NODES
    )]
    pub node_name: Option<String>,
    /// Seconds that a server may be silent before another on the same --store takes over its background work
    #[arg(
        long,
        env = "ZENOBE_LEASE_SECONDS",
        default_value = "10",
        value_parser = at_least_one,
        value_name = "SECONDS",
        help_heading = NODES
    )]
    pub lease_seconds: u32,
    /// Seconds that the clocks of the servers on the same --store may differ. Items expire, stream records are trimmed and
    /// request tokens expire that much later
    #[arg(
        long,
        env = "ZENOBE_CLOCK_SKEW_SECONDS",
        default_value = "600",
        value_name = "SECONDS",
        help_heading = NODES
    )]
    pub clock_skew_seconds: u32,

    /// Let standbys of the --store answer eventually consistent reads, while their lag is within --standby-max-lag-ms. Their hosts must be in the URL
    #[arg(
        long,
        env = "ZENOBE_EVENTUAL_READS_FROM_STANDBYS",
        default_value = "false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = BoolishValueParser::new(),
        value_name = "BOOL",
        help_heading = NODES
    )]
    pub eventual_reads_from_standbys: bool,
    /// Milliseconds that a standby may be behind and still answer eventually consistent reads
    #[arg(
        long,
        env = "ZENOBE_STANDBY_MAX_LAG_MS",
        default_value = "1000",
        value_parser = at_least_one,
        value_name = "MILLISECONDS",
        help_heading = NODES
    )]
    pub standby_max_lag_ms: u32,

    /// Memory for a cache of items that answers eventually consistent GetItem and BatchGetItem, in MiB; 0 means no
    /// cache. Writes through other servers show within --item-cache-ttl-ms
    #[arg(
        long,
        env = "ZENOBE_ITEM_CACHE_MB",
        default_value = "0",
        value_name = "MIB",
        help_heading = NODES
    )]
    pub item_cache_mb: u32,
    /// Milliseconds for which a cached item is used. With 0 it is used until it is written through this server or evicted
    #[arg(
        long,
        env = "ZENOBE_ITEM_CACHE_TTL_MS",
        default_value = "300000",
        value_name = "MILLISECONDS",
        help_heading = NODES
    )]
    pub item_cache_ttl_ms: u32,
    /// Memory for a cache of pages that answers eventually consistent Query and Scan with the same parameters, in MiB; 0
    /// means no cache. Every write is visible within --query-cache-ttl-ms
    #[arg(
        long,
        env = "ZENOBE_QUERY_CACHE_MB",
        default_value = "0",
        value_name = "MIB",
        help_heading = NODES
    )]
    pub query_cache_mb: u32,
    /// Milliseconds for which a cached page is used. With 0 no page is cached
    #[arg(
        long,
        env = "ZENOBE_QUERY_CACHE_TTL_MS",
        default_value = "300000",
        value_name = "MILLISECONDS",
        help_heading = NODES
    )]
    pub query_cache_ttl_ms: u32,

    /// File of accepted access keys, one line `id:secret` each; turns on signature verification. The variable
    /// holds the keys themselves: id:secret[,id:secret]
    #[arg(long, env = "ZENOBE_CREDENTIALS", value_name = "FILE", help_heading = ACCESS)]
    pub credentials: Option<CredentialsSource>,
    /// Let anyone who can reach the address read and write, even beyond loopback
    #[arg(
        long,
        env = "ZENOBE_INSECURE_ACCEPT_ANY_CREDENTIALS",
        default_value = "false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = BoolishValueParser::new(),
        value_name = "BOOL",
        help_heading = ACCESS
    )]
    pub insecure_accept_any_credentials: bool,
    /// Another host name that clients may call the server by, *.NAME, or * for any; may be repeated
    #[arg(
        long,
        env = "ZENOBE_ALLOWED_HOST",
        value_delimiter = ',',
        value_parser = trimmed::<AllowedHost>,
        value_name = "NAME",
        help_heading = ACCESS
    )]
    pub allowed_host: Vec<AllowedHost>,
    /// Origin whose web pages may call the server, such as http://localhost:3000, or * for any; may be repeated.
    /// If not set, no page may
    #[arg(
        long,
        env = "ZENOBE_CORS_ORIGIN",
        value_delimiter = ',',
        value_parser = trimmed::<CorsOrigin>,
        value_name = "ORIGIN",
        help_heading = ACCESS
    )]
    pub cors_origin: Vec<CorsOrigin>,

    /// Region of the tables, as shown in ARNs
    #[arg(
        long,
        env = "ZENOBE_REGION",
        default_value = "us-east-1",
        value_parser = region,
        value_name = "REGION",
        help_heading = IDENTITY
    )]
    pub region: String,
    /// Account of the tables, as shown in ARNs
    #[arg(
        long,
        env = "ZENOBE_ACCOUNT",
        default_value = "000000000000",
        value_parser = account,
        value_name = "ACCOUNT",
        help_heading = IDENTITY
    )]
    pub account: String,
    /// Give each access key and region its own tables
    #[arg(
        long,
        env = "ZENOBE_NAMESPACES_FROM_CREDENTIALS",
        default_value = "false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = BoolishValueParser::new(),
        value_name = "BOOL",
        help_heading = IDENTITY
    )]
    pub namespaces_from_credentials: bool,

    /// Maximum number of tables per account and region; the default is AWS's
    #[arg(
        long,
        env = "ZENOBE_MAX_TABLES",
        default_value = "2500",
        value_parser = at_least_one,
        value_name = "COUNT",
        help_heading = BEHAVIOUR
    )]
    pub max_tables: u32,
    /// Maximum number of read units, and of write units, that a table or a global index may have, provisioned or as its
    /// on-demand maximum. The default is AWS's, or the account's maximum if that is less
    #[arg(
        long,
        env = "ZENOBE_TABLE_CAPACITY_UNITS_MAX",
        default_value_t = Limits::TABLE_CAPACITY_UNITS,
        value_parser = at_least_one,
        value_name = "UNITS",
        help_heading = BEHAVIOUR
    )]
    pub table_capacity_units_max: u32,
    /// Maximum number of read units, and of write units, that all tables and global indexes of an account and region may be
    /// provisioned with together; the default is AWS's
    #[arg(
        long,
        env = "ZENOBE_ACCOUNT_CAPACITY_UNITS_MAX",
        default_value_t = Limits::ACCOUNT_CAPACITY_UNITS,
        value_parser = at_least_one,
        value_name = "UNITS",
        help_heading = BEHAVIOUR
    )]
    pub account_capacity_units_max: u32,
    /// Which error texts to use where AWS has two
    #[arg(
        long,
        env = "ZENOBE_WORDING",
        default_value = "classic",
        value_parser = wording_parser(),
        value_name = "WORDING",
        help_heading = BEHAVIOUR
    )]
    pub wording: Wording,
    /// What to do with requests that exceed the throughput of a table, an index or a partition. A table's tag
    /// zenobe:throughput overrides it, but not `enforce` with --credentials and --namespaces-from-credentials: no tenant may
    /// loosen that
    #[arg(
        long,
        env = "ZENOBE_THROUGHPUT",
        default_value = "observe",
        value_parser = throughput_parser(),
        value_name = "MODE",
        help_heading = BEHAVIOUR
    )]
    pub throughput: ThroughputMode,
    /// Read units per second that all tables of an account may consume together, in all its regions. What exceeds them is
    /// treated as --throughput says. If not set, there is no limit
    #[arg(
        long,
        env = "ZENOBE_ACCOUNT_READ_UNITS_PER_SECOND",
        value_parser = at_least_one,
        value_name = "UNITS",
        help_heading = BEHAVIOUR
    )]
    pub account_read_units_per_second: Option<u32>,
    /// Write units per second that all tables of an account may consume together, in all its regions. What exceeds them is
    /// treated as --throughput says. If not set, there is no limit
    #[arg(
        long,
        env = "ZENOBE_ACCOUNT_WRITE_UNITS_PER_SECOND",
        value_parser = at_least_one,
        value_name = "UNITS",
        help_heading = BEHAVIOUR
    )]
    pub account_write_units_per_second: Option<u32>,
    /// Refuse PartiQL statements that would scan a table or an index
    #[arg(
        long,
        env = "ZENOBE_REFUSE_SCANS",
        default_value = "false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = BoolishValueParser::new(),
        value_name = "BOOL",
        help_heading = BEHAVIOUR
    )]
    pub refuse_scans: bool,
    /// Seconds by which LatestRestorableDateTime is in the past: 300 as on AWS, 0 to restore up to the present
    #[arg(
        long,
        env = "ZENOBE_RESTORABLE_LAG_SECONDS",
        default_value = "0",
        value_name = "SECONDS",
        help_heading = BEHAVIOUR
    )]
    pub restorable_lag_seconds: u32,
    /// Seconds that the clock may jump forward. After a larger jump, nothing expires, no stream is trimmed
    /// and no table is scaled until `zenobe clock confirm`, or until the clock is corrected; 0 accepts any jump
    #[arg(
        long,
        env = "ZENOBE_CLOCK_JUMP_SECONDS",
        default_value = "86400",
        value_name = "SECONDS",
        help_heading = BEHAVIOUR
    )]
    pub clock_jump_seconds: u32,

    /// Open shards per stream, which consumers can read in parallel
    #[arg(
        long,
        env = "ZENOBE_STREAM_SHARDS",
        default_value = "1",
        value_parser = at_least_one,
        value_name = "COUNT",
        help_heading = STREAMS
    )]
    pub stream_shards: u32,
    /// Seconds after which a stream's shards close and their children take over
    #[arg(
        long,
        env = "ZENOBE_STREAM_ROLLOVER_SECONDS",
        default_value = "14400",
        value_parser = at_least_one,
        value_name = "SECONDS",
        help_heading = STREAMS
    )]
    pub stream_rollover_seconds: u32,
    /// Records after which a shard closes, whatever its age; no limit if not set
    #[arg(
        long,
        env = "ZENOBE_STREAM_SHARD_RECORDS",
        value_parser = at_least_one,
        value_name = "COUNT",
        help_heading = STREAMS
    )]
    pub stream_shard_records: Option<u32>,
    /// Hours that stream records stay readable
    #[arg(
        long,
        env = "ZENOBE_STREAM_RETENTION_HOURS",
        default_value = "24",
        value_parser = at_least_one,
        value_name = "HOURS",
        help_heading = STREAMS
    )]
    pub stream_retention_hours: u32,
    /// Directory below which triggers added by command may write dead letters. If not set, they can't
    #[arg(
        long,
        env = "ZENOBE_DEAD_LETTER_DIRECTORY",
        value_name = "DIRECTORY",
        help_heading = STREAMS
    )]
    pub dead_letter_directory: Option<PathBuf>,

    /// Where imports read their objects, and exports and s3:// backups write theirs: `aws`, the URL of a server that is compatible
    /// with S3, or file:///DIRECTORY, whose subdirectories are then the buckets. If not set, there are none. Access keys come from
    /// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the standard AWS credential chain
    #[arg(
        long,
        env = "ZENOBE_S3_ENDPOINT",
        value_parser = trimmed::<ObjectStoreEndpoint>,
        value_name = "URL",
        help_heading = OBJECTS
    )]
    pub s3_endpoint: Option<ObjectStoreEndpoint>,
    /// Region to sign requests to the object store for; AWS_REGION or us-east-1 if not set
    #[arg(
        long,
        env = "ZENOBE_S3_REGION",
        value_parser = region,
        value_name = "REGION",
        help_heading = OBJECTS
    )]
    pub s3_region: Option<String>,
    /// File with the access key for the object store, one line `id:secret`, instead of the AWS variables. The
    /// variable holds the key itself
    #[arg(long, env = "ZENOBE_S3_CREDENTIALS", value_name = "FILE", help_heading = OBJECTS)]
    pub s3_credentials: Option<CredentialsSource>,

    /// Where to keep a copy of the data directory that is at most a few seconds old: s3://BUCKET/PREFIX (with --s3-endpoint), or
    /// file:///DIRECTORY on another disk. `zenobe restore` restores it as of any second
    #[arg(
        long,
        env = "ZENOBE_SHIP_TO",
        value_parser = trimmed::<ObjectLocation>,
        value_name = "PLACE",
        help_heading = BACKUPS
    )]
    pub ship_to: Option<ObjectLocation>,
    /// Hours between copies of the files. A restore applies the log since the last one
    #[arg(
        long,
        env = "ZENOBE_SHIP_SNAPSHOT_HOURS",
        default_value = "24",
        value_parser = at_least_one,
        value_name = "HOURS",
        help_heading = BACKUPS
    )]
    pub ship_snapshot_hours: u32,
    /// Days for which every second can be restored. What is older is removed
    #[arg(
        long,
        env = "ZENOBE_SHIP_RETENTION_DAYS",
        default_value = "7",
        value_parser = at_least_one,
        value_name = "DAYS",
        help_heading = BACKUPS
    )]
    pub ship_retention_days: u32,

    /// Days to keep CloudWatch's metrics. With 0 there are none, and requests to CloudWatch are not answered
    #[arg(
        long,
        env = "ZENOBE_METRICS_RETENTION_DAYS",
        default_value = "15",
        value_name = "DAYS",
        help_heading = MONITORING
    )]
    pub metrics_retention_days: u32,

    /// Days to keep the traffic of tables, which `zenobe cost` multiplies by AWS's prices. With 0 it is not recorded
    #[arg(
        long,
        env = "ZENOBE_COST_RETENTION_DAYS",
        default_value = "35",
        value_name = "DAYS",
        help_heading = MONITORING
    )]
    pub cost_retention_days: u32,

    /// What to log: error, warn, info, debug, or a filter such as warn,zenobe_engine=debug
    #[arg(
        long,
        env = "ZENOBE_LOG",
        default_value = "info",
        value_name = "FILTER",
        help_heading = LOGGING
    )]
    pub log: String,
    /// Log every request that takes longer than this many milliseconds: what it read, what it consumed and who sent it. If not
    /// set, none is logged
    #[arg(
        long,
        env = "ZENOBE_SLOW_REQUEST_MS",
        value_name = "MILLISECONDS",
        help_heading = LOGGING
    )]
    pub slow_request_ms: Option<u32>,
    /// Where to send traces and metrics: the base URL of an OpenTelemetry collector that takes OTLP over HTTP, for example
    /// http://127.0.0.1:4318. If not set, nothing is sent
    #[arg(
        long,
        env = "ZENOBE_OTLP_ENDPOINT",
        value_parser = trimmed::<Url>,
        value_name = "URL",
        help_heading = LOGGING
    )]
    pub otlp_endpoint: Option<Url>,
    /// Log format
    #[arg(
        long,
        env = "ZENOBE_LOG_FORMAT",
        default_value = "text",
        value_enum,
        value_name = "FORMAT",
        help_heading = LOGGING
    )]
    pub log_format: LogFormat,

    /// Stop the clock; only POST /_zenobe/clock moves it
    #[arg(
        long,
        env = "ZENOBE_DRIVEN_CLOCK",
        default_value = "false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = BoolishValueParser::new(),
        value_name = "BOOL",
        help_heading = TESTS
    )]
    pub driven_clock: bool,
    /// Let tests copy, restore and empty the database and inject faults, through /_zenobe/test and `zenobe test`
    #[arg(
        long,
        env = "ZENOBE_TEST_CONTROL",
        default_value = "false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = BoolishValueParser::new(),
        value_name = "BOOL",
        help_heading = TESTS
    )]
    pub test_control: bool,
    /// With --test-control: a fault rule for requests, such as 'kind=throttle table=Orders rate=0.1'; may be repeated
    #[arg(
        long,
        env = "ZENOBE_FAULT",
        value_delimiter = ',',
        value_parser = trimmed::<Rule>,
        value_name = "RULE",
        help_heading = TESTS
    )]
    pub fault: Vec<Rule>,
    /// With --test-control: seed that decides which requests meet faults. The same requests meet the same faults in every run
    #[arg(
        long,
        env = "ZENOBE_FAULT_SEED",
        default_value = "0",
        value_name = "NUMBER",
        help_heading = TESTS
    )]
    pub fault_seed: u64,
    /// With --test-control: write all requests of the API, and how they were answered, to this file, for `zenobe test replay`
    #[arg(long, env = "ZENOBE_RECORD", value_name = "FILE", help_heading = TESTS)]
    pub record: Option<PathBuf>,
}

const NETWORK: &str = "Network";
const STORAGE: &str = "Storage";
const NODES: &str = "Many nodes";
const ACCESS: &str = "Access";
const IDENTITY: &str = "Names in ARNs";
const BEHAVIOUR: &str = "Behaviour";
const STREAMS: &str = "Streams and triggers";
const OBJECTS: &str = "Object store";
const BACKUPS: &str = "Backups";
const MONITORING: &str = "Metrics and costs";
const LOGGING: &str = "Logging";
const TESTS: &str = "For tests";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_of_an_option_is_named_as_its_flag() {
        let options = Options::augment_args(clap::Command::new("test"));
        for option in options.get_arguments().filter(|option| option.get_id() != "port") {
            let flag = option.get_long().expect("every option has a flag");
            let expected = format!("ZENOBE_{}", flag.replace('-', "_").to_ascii_uppercase());
            assert_eq!(option.get_env().expect(flag).to_str(), Some(expected.as_str()));
            assert!(option.get_help_heading().is_some(), "{flag} has no heading");
        }
    }
}
