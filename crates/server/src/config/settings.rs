//! What the server runs with: all sources merged, defaults filled in, contradictions refused.

use std::collections::BTreeMap;
use std::env::VarError;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing_subscriber::filter::{self, Targets};
use zenobe_api::Wording;
use zenobe_auth::{Credentials, CredentialsError};
use zenobe_engine::options::StreamOptions;

use super::options::{Options, OptionsError, environment_variable, triggers_from_toml};
use super::values::{CredentialsSource, Durability, LogFormat, Switch};
use crate::cli::ServeArguments;
use crate::http::sites::{AllowedHost, CorsOrigin};
use crate::triggers::TriggerDefinition;

/// The variable that names the configuration file.
const CONFIG: &str = "ZENOBE_CONFIG";

const REGION_LENGTH_MAX: usize = 64;
const ACCOUNT_LENGTH: usize = 12;

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub listen: SocketAddr,
    pub location: Location,
    pub cache_size_bytes: usize,
    pub accept_damaged_log: bool,
    pub region: String,
    pub account: String,
    pub namespaces_from_credentials: bool,
    /// The access keys to verify signatures with; `None` accepts any.
    pub credentials: Option<Credentials>,
    /// What `Host` may say besides what the server knows by itself.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Whose web pages may call.
    pub cors_origins: Vec<CorsOrigin>,
    pub connections_max: usize,
    /// `None` chooses by the peer.
    pub connections_per_peer_max: Option<usize>,
    pub tables_max: u64,
    pub wording: Wording,
    /// Where triggers that commands add may write files; `None` lets them write none.
    pub dead_letter_directory: Option<PathBuf>,
    pub idle_timeout: Duration,
    pub stall_timeout: Duration,
    pub shutdown_timeout: Duration,
    pub streams: StreamOptions,
    /// Whether time moves only when it is told to.
    pub driven_clock: bool,
    pub triggers: Vec<TriggerDefinition>,
    pub log: Targets,
    pub log_format: LogFormat,
}

/// Where the data is, and how safe a write there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    Memory,
    Directory { path: PathBuf, durability: Durability },
}

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("the environment variable {name} is not valid UTF-8")]
    NotUnicode { name: String },
    #[error("cannot read the configuration file {}: {error}", path.display())]
    ConfigFile { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error("--memory and --data exclude each other")]
    MemoryAndData,
    #[error("--memory keeps nothing, so --durability has no meaning with it")]
    MemoryAndDurability,
    #[error("cannot listen on `{given}`: {detail}")]
    Listen { given: String, detail: String },
    #[error("cannot read the credentials file {}: {error}", path.display())]
    CredentialsFile { path: PathBuf, error: std::io::Error },
    #[error(
        "every user of this machine can read the credentials file {} (its mode is {mode:04o}): \
         take that away with `chmod 600`, or, if it is a mounted secret, mount it with mode 0400",
        path.display()
    )]
    CredentialsFileOpen { path: PathBuf, mode: u32 },
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error(
        "--region must be 1 to {REGION_LENGTH_MAX} letters, digits, `-` and `_`, such as us-east-1, not `{given}`"
    )]
    Region { given: String },
    #[error("--account must be {ACCOUNT_LENGTH} digits, such as 123456789012, not `{given}`")]
    Account { given: String },
    #[error(
        "{listen} can be reached from other machines, so the server needs credentials to verify signatures: \
         give --credentials, or --insecure-accept-any-credentials to let anybody read and write"
    )]
    Open { listen: SocketAddr },
    #[error("--credentials and --insecure-accept-any-credentials exclude each other")]
    CredentialsAndAcceptAny,
    #[error("{name} must be at least 1")]
    Zero { name: &'static str },
    #[error("`{log}` is not a log filter: {detail}")]
    LogFilter { log: String, detail: String },
}

impl Settings {
    /// Reads the environment and the configuration file besides the given arguments.
    pub fn load(arguments: ServeArguments) -> Result<Settings, SettingsError> {
        Settings::load_with(arguments, |name| std::env::var(name))
    }

    fn load_with(
        arguments: ServeArguments,
        variable: impl Fn(&str) -> Result<String, VarError>,
    ) -> Result<Settings, SettingsError> {
        let variables = texts(variable)?;
        let environment = Options::from_environment(|name| variables.get(name).cloned())?;
        let config = arguments.config.or_else(|| variables.get(CONFIG).map(PathBuf::from));
        let text = match &config {
            Some(path) => read(path, |path, error| SettingsError::ConfigFile { path, error })?,
            None => String::new(),
        };
        let file = Options::from_toml(&text)?;
        let settings = Settings::resolve([arguments.options, environment, file])?;
        Ok(Settings { triggers: triggers_from_toml(&text)?, ..settings })
    }

    /// Merges the sources, strongest first.
    pub fn resolve(sources: [Options; 3]) -> Result<Settings, SettingsError> {
        let location = resolve_location(&sources)?;
        let [flags, environment, file] = sources;
        let options = flags.or(environment).or(file);

        let listen = resolve_listen(options.listen.as_deref().unwrap_or("127.0.0.1:8000"))?;
        let accept_any = is_on(options.insecure_accept_any_credentials);
        let credentials =
            options.credentials.map(|source| read_credentials(&source)).transpose()?;
        match (&credentials, accept_any) {
            (Some(_), true) => return Err(SettingsError::CredentialsAndAcceptAny),
            (None, false) if !listen.ip().is_loopback() => {
                return Err(SettingsError::Open { listen });
            }
            _ => {}
        }
        let at_least_one = |name, value: u32| match value {
            0 => Err(SettingsError::Zero { name }),
            _ => Ok(value),
        };
        let seconds = |name, value: Option<u32>, default| {
            at_least_one(name, value.unwrap_or(default))
                .map(|seconds| Duration::from_secs(seconds.into()))
        };
        let connections_max =
            at_least_one("max-connections", options.max_connections.unwrap_or(4096))?;
        let cache_mb = at_least_one("cache-mb", options.cache_mb.unwrap_or(384))?;
        Ok(Settings {
            listen,
            location,
            cache_size_bytes: cache_mb as usize * 1024 * 1024,
            accept_damaged_log: is_on(options.accept_damaged_log),
            region: region(options.region)?,
            account: account(options.account)?,
            namespaces_from_credentials: is_on(options.namespaces_from_credentials),
            credentials,
            allowed_hosts: options.allowed_host.unwrap_or_default(),
            cors_origins: options.cors_origin.unwrap_or_default(),
            connections_max: connections_max as usize,
            connections_per_peer_max: options
                .max_connections_per_peer
                .map(|count| at_least_one("max-connections-per-peer", count))
                .transpose()?
                .map(|count| count as usize),
            tables_max: at_least_one("max-tables", options.max_tables.unwrap_or(2_500))?.into(),
            wording: options.wording.unwrap_or_default(),
            dead_letter_directory: options.dead_letter_directory,
            idle_timeout: seconds("idle-timeout-seconds", options.idle_timeout_seconds, 60)?,
            stall_timeout: seconds("stall-timeout-seconds", options.stall_timeout_seconds, 30)?,
            shutdown_timeout: seconds(
                "shutdown-timeout-seconds",
                options.shutdown_timeout_seconds,
                10,
            )?,
            streams: StreamOptions {
                shards: at_least_one("stream-shards", options.stream_shards.unwrap_or(2))?,
                shard_rollover_ms: seconds(
                    "stream-rollover-seconds",
                    options.stream_rollover_seconds,
                    4 * 60 * 60,
                )?
                .as_millis() as u64,
                shard_records_max: options
                    .stream_shard_records
                    .map(|count| at_least_one("stream-shard-records", count).map(u64::from))
                    .transpose()?,
                retention_ms: u64::from(at_least_one(
                    "stream-retention-hours",
                    options.stream_retention_hours.unwrap_or(24),
                )?) * 60
                    * 60
                    * 1_000,
            },
            driven_clock: is_on(options.driven_clock),
            triggers: Vec::new(),
            log: log_filter(options.log.unwrap_or_else(|| "info".into()))?,
            log_format: options.log_format.unwrap_or(LogFormat::Text),
        })
    }
}

/// The variables that are read, as far as they are set to something.
fn texts(
    variable: impl Fn(&str) -> Result<String, VarError>,
) -> Result<BTreeMap<String, String>, SettingsError> {
    let names = Options::KEYS.iter().map(|key| environment_variable(key));
    let mut texts = BTreeMap::new();
    for name in names.chain([CONFIG.to_owned()]) {
        match variable(&name) {
            Ok(text) if text.is_empty() => {}
            Ok(text) => drop(texts.insert(name, text)),
            Err(VarError::NotPresent) => {}
            Err(VarError::NotUnicode(_)) => return Err(SettingsError::NotUnicode { name }),
        }
    }
    Ok(texts)
}

/// The strongest source that speaks of the location decides: `--memory` overrides a data directory in the
/// configuration file, and `--memory=false` its `memory = true`, but one source cannot ask for both.
fn resolve_location(sources: &[Options; 3]) -> Result<Location, SettingsError> {
    let durability = sources.iter().find_map(|source| source.durability);
    let memory = is_on(sources.iter().find_map(|source| source.memory));
    for source in sources {
        match (memory && is_on(source.memory), &source.data) {
            (true, Some(_)) => return Err(SettingsError::MemoryAndData),
            (true, None) if source.durability.is_some() => {
                return Err(SettingsError::MemoryAndDurability);
            }
            (true, None) => return Ok(Location::Memory),
            (false, Some(path)) => return Ok(directory(path, durability)),
            (false, None) => {}
        }
    }
    Ok(directory(Path::new("./zenobe-data"), durability))
}

fn directory(path: &Path, durability: Option<Durability>) -> Location {
    Location::Directory {
        path: path.to_owned(),
        durability: durability.unwrap_or(Durability::Sync),
    }
}

fn resolve_listen(given: &str) -> Result<SocketAddr, SettingsError> {
    let fault = |detail: String| SettingsError::Listen { given: given.to_owned(), detail };
    let mut addresses = given.to_socket_addrs().map_err(|error| fault(error.to_string()))?;
    addresses.next().ok_or_else(|| fault("the name has no address".into()))
}

fn read_credentials(source: &CredentialsSource) -> Result<Credentials, SettingsError> {
    let text = match source {
        CredentialsSource::Inline(text) => text.clone(),
        CredentialsSource::File(path) => {
            let fault = |path, error| SettingsError::CredentialsFile { path, error };
            let mode = permissions(path).map_err(|error| fault(path.clone(), error))?;
            if mode & OTHERS_READ_OR_WRITE != 0 {
                return Err(SettingsError::CredentialsFileOpen { path: path.clone(), mode });
            }
            read(path, fault)?
        }
    };
    Ok(Credentials::parse(&text)?)
}

/// In a file's mode.
const OTHERS_READ_OR_WRITE: u32 = 0o006;

fn permissions(path: &Path) -> std::io::Result<u32> {
    let metadata = std::fs::metadata(path)?;
    Ok(metadata.permissions().mode() & 0o7777)
}

fn region(given: Option<String>) -> Result<String, SettingsError> {
    let region = given.unwrap_or_else(|| "us-east-1".into());
    let is_in_region = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_valid =
        (1..=REGION_LENGTH_MAX).contains(&region.len()) && region.bytes().all(is_in_region);
    if is_valid { Ok(region) } else { Err(SettingsError::Region { given: region }) }
}

fn account(given: Option<String>) -> Result<String, SettingsError> {
    let account = given.unwrap_or_else(|| "000000000000".into());
    let is_valid = account.len() == ACCOUNT_LENGTH && account.bytes().all(|it| it.is_ascii_digit());
    if is_valid { Ok(account) } else { Err(SettingsError::Account { given: account }) }
}

fn read(
    path: &Path,
    fault: impl FnOnce(PathBuf, std::io::Error) -> SettingsError,
) -> Result<String, SettingsError> {
    std::fs::read_to_string(path).map_err(|error| fault(path.to_owned(), error))
}

fn log_filter(log: String) -> Result<Targets, SettingsError> {
    // An empty part would stand for errors only, and override what was said before it.
    let parts: Vec<&str> = log.split(',').filter(|part| !part.trim().is_empty()).collect();
    parts.join(",").parse().map_err(|error: filter::ParseError| SettingsError::LogFilter {
        detail: error.to_string(),
        log,
    })
}

fn is_on(switch: Option<Switch>) -> bool {
    switch.is_some_and(|Switch(on)| on)
}

#[cfg(test)]
mod tests {
    use zenobe_testing::TemporaryDirectory;

    use super::*;

    fn resolve(flags: &str, environment: &str, file: &str) -> Result<Settings, SettingsError> {
        Settings::resolve([flags, environment, file].map(|text| Options::from_toml(text).unwrap()))
    }

    fn refusal(flags: &str, environment: &str, file: &str) -> String {
        resolve(flags, environment, file).expect_err(flags).to_string()
    }

    #[test]
    fn the_defaults_are_a_durable_store_on_loopback() {
        let settings = resolve("", "", "").unwrap();
        assert_eq!(settings.listen.to_string(), "127.0.0.1:8000");
        let path = PathBuf::from("./zenobe-data");
        let durability = Durability::Sync;
        assert_eq!(settings.location, Location::Directory { path, durability });
        assert_eq!(settings.credentials, None);
        assert_eq!((settings.region.as_str(), settings.connections_max), ("us-east-1", 4096));
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_the_file() {
        let three = ["region = 'flag'", "region = 'env'", "region = 'file'"];
        assert_eq!(resolve(three[0], three[1], three[2]).unwrap().region, "flag");
        assert_eq!(resolve("", three[1], three[2]).unwrap().region, "env");
        assert_eq!(resolve("", "", three[2]).unwrap().region, "file");
    }

    #[test]
    fn the_strongest_source_chooses_the_location() {
        let memory = resolve("memory = true", "", "data = 'x'").unwrap().location;
        assert_eq!(memory, Location::Memory);
        let directory = resolve("data = 'x'", "memory = true", "durability = 'os'").unwrap();
        let (path, durability) = (PathBuf::from("x"), Durability::Os);
        assert_eq!(directory.location, Location::Directory { path, durability });
        assert_eq!(
            refusal("", "memory = true\ndata = 'x'", ""),
            "--memory and --data exclude each other"
        );
    }

    #[test]
    fn a_stronger_source_switches_memory_off() {
        let (path, durability) = (PathBuf::from("./zenobe-data"), Durability::Sync);
        let default = Location::Directory { path, durability };
        let location =
            |flags, environment, file| resolve(flags, environment, file).unwrap().location;
        assert_eq!(location("memory = false", "", "memory = true"), default);
        assert_eq!(location("", "memory = 0", "memory = true"), default);
        assert_eq!(location("memory = true", "memory = 0", ""), Location::Memory);
        assert_eq!(location("", "", "memory = true"), Location::Memory);
        let (path, durability) = (PathBuf::from("x"), Durability::Os);
        let file = "memory = true\ndata = 'x'\ndurability = 'os'";
        assert_eq!(location("memory = false", "", file), Location::Directory { path, durability });
    }

    fn load(name: &str, value: &Result<String, VarError>) -> Result<Settings, SettingsError> {
        let arguments = ServeArguments { config: None, options: Options::default() };
        Settings::load_with(arguments, |asked| match asked == name {
            true => value.clone(),
            false => Err(VarError::NotPresent),
        })
    }

    #[test]
    fn variables_are_text_and_empty_ones_are_not_there() {
        for name in ["ZENOBE_REGION", "ZENOBE_DATA", "ZENOBE_CONFIG"] {
            let error = load(name, &Err(VarError::NotUnicode("x".into()))).unwrap_err();
            let expected = format!("the environment variable {name} is not valid UTF-8");
            assert_eq!(error.to_string(), expected);
            assert!(load(name, &Ok(String::new())).is_ok(), "{name}");
        }
        assert_eq!(load("ZENOBE_REGION", &Ok("r".into())).unwrap().region, "r");
    }

    #[test]
    fn beyond_loopback_credentials_are_required() {
        let open = "listen = '0.0.0.0:8000'";
        assert!(
            refusal(open, "", "").starts_with("0.0.0.0:8000 can be reached from other machines")
        );
        let accepted = format!("{open}\ninsecure-accept-any-credentials = true");
        assert_eq!(resolve(&accepted, "", "").unwrap().credentials, None);
        assert!(resolve("listen = '[::1]:0'", "", "").is_ok());
        assert!(refusal("credentials = '/absent'", "", "").contains("/absent"));
    }

    #[test]
    fn accounts_and_regions_have_their_form() {
        for region in ["", "us east", "us:east", "é", &"r".repeat(65)] {
            let expected =
                "--region must be 1 to 64 letters, digits, `-` and `_`, such as us-east-1";
            let message = refusal(&format!("region = '{region}'"), "", "");
            assert_eq!(message, format!("{expected}, not `{region}`"));
        }
        for account in ["", "1", "12345678901a", "1234567890123"] {
            let expected = "--account must be 12 digits, such as 123456789012";
            let message = refusal(&format!("account = '{account}'"), "", "");
            assert_eq!(message, format!("{expected}, not `{account}`"));
        }
        let settings = resolve("region = 'local_1'\naccount = '123456789012'", "", "").unwrap();
        assert_eq!(
            (settings.region.as_str(), settings.account.as_str()),
            ("local_1", "123456789012")
        );
    }

    #[test]
    fn credentials_that_every_user_can_read_are_refused() {
        let directory = TemporaryDirectory::new("credentials");
        let path = directory.path().join("keys");
        std::fs::write(&path, "AKID:secret").unwrap();
        let resolve = |mode: u32| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            resolve(&format!("credentials = '{}'", path.display()), "", "")
        };
        for mode in [0o600, 0o400, 0o640] {
            assert_eq!(resolve(mode).unwrap().credentials.unwrap().len(), 1);
        }
        for mode in [0o644, 0o602] {
            let message = resolve(mode).unwrap_err().to_string();
            let expected = format!(
                "every user of this machine can read the credentials file {} (its mode is {mode:04o}): \
                 take that away with `chmod 600`",
                path.display()
            );
            assert!(message.starts_with(&expected), "{message}");
        }
    }

    #[test]
    fn senseless_values_are_refused() {
        assert_eq!(refusal("max-connections = 0", "", ""), "max-connections must be at least 1");
        assert!(refusal("listen = 'nowhere'", "", "").starts_with("cannot listen on `nowhere`: "));
        assert!(refusal("log = 'a=b=c'", "", "").contains("is not a log filter"));
        let with_empty_part = resolve("log = 'info,'", "", "").unwrap().log;
        assert_eq!(with_empty_part, resolve("log = 'info'", "", "").unwrap().log);
    }
}
