//! The options as given by one source: the command line, the environment or a file. What is not
//! given is `None`.

use std::path::PathBuf;

use clap::Args;
use zenobe_api::Wording;

use super::values::{CredentialsSource, Durability, LogFormat, OptionValue, Switch, parse_wording};
use crate::http::sites::{AllowedHost, CorsOrigin};
use crate::triggers::{DefinitionError, TriggerDefinition};

/// The one key of a configuration file that is no option.
const TRIGGERS_KEY: &str = "trigger";

/// Declares the options once. The doc comments are the help texts.
macro_rules! options {
    ($($(#[$attribute:meta])* $field:ident: $type:ty = $key:literal,)*) => {
        #[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
        pub struct Options {
            $($(#[$attribute])* pub $field: Option<$type>,)*
        }

        impl Options {
            /// Every option's TOML key; the flag is the same with `--` before it.
            pub const KEYS: &'static [&'static str] = &[$($key,)*];

            /// These options, and where they say nothing, those of a weaker source.
            pub fn or(self, weaker: Options) -> Options {
                Options { $($field: self.$field.or(weaker.$field),)* }
            }

            /// Sets an option from text. `Ok(false)` means that there is no such option.
            fn set(&mut self, key: &str, text: &str) -> Result<bool, String> {
                match key {
                    $($key => self.$field = Some(OptionValue::parse_text(text)?),)*
                    _ => return Ok(false),
                }
                Ok(true)
            }

            /// Whether an option may be given several times.
            fn is_list(key: &str) -> bool {
                match key {
                    $($key => <$type as OptionValue>::IS_LIST,)*
                    _ => false,
                }
            }
        }
    };
}

options! {
    /// Address to listen on [default: 127.0.0.1:8000] [env: ZENOBE_LISTEN]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: String = "listen",
    /// Directory of the data, created if missing [default: ./zenobe-data] [env: ZENOBE_DATA]
    #[arg(long, value_name = "DIRECTORY")]
    data: PathBuf = "data",
    /// Keep everything in memory; nothing survives the process [env: ZENOBE_MEMORY]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    memory: Switch = "memory",
    /// What an acknowledged write survives: sync (power loss) or os (a crash of the process) [default: sync] [env: ZENOBE_DURABILITY]
    #[arg(long, value_name = "sync|os")]
    durability: Durability = "durability",
    /// Start once with a damaged log, without the acknowledged writes behind the damage [env: ZENOBE_ACCEPT_DAMAGED_LOG]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    accept_damaged_log: Switch = "accept-damaged-log",
    /// Memory for cached data, in MiB [default: 384] [env: ZENOBE_CACHE_MB]
    #[arg(long, value_name = "MIB")]
    cache_mb: u32 = "cache-mb",
    /// Region of the tables, as it appears in ARNs [default: us-east-1] [env: ZENOBE_REGION]
    #[arg(long, value_name = "REGION")]
    region: String = "region",
    /// Account of the tables, as it appears in ARNs [default: 000000000000] [env: ZENOBE_ACCOUNT]
    #[arg(long, value_name = "ACCOUNT")]
    account: String = "account",
    /// Give each access key and region tables of its own [env: ZENOBE_NAMESPACES_FROM_CREDENTIALS]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    namespaces_from_credentials: Switch = "namespaces-from-credentials",
    /// File of accepted access keys, a line `id:secret` each; signatures are then verified [env: ZENOBE_CREDENTIALS, holding id:secret[,id:secret] itself]
    #[arg(long, value_name = "FILE")]
    credentials: CredentialsSource = "credentials",
    /// Let anybody who reaches the address read and write, even beyond loopback [env: ZENOBE_INSECURE_ACCEPT_ANY_CREDENTIALS]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    insecure_accept_any_credentials: Switch = "insecure-accept-any-credentials",
    /// Host name by which clients call the server besides those that are known, *.NAME, or * for any; may be repeated [env: ZENOBE_ALLOWED_HOST, separated by commas]
    #[arg(long, value_name = "NAME")]
    allowed_host: Vec<AllowedHost> = "allowed-host",
    /// Origin of web pages that may call the server, such as http://localhost:3000, or * for any; may be repeated [default: none] [env: ZENOBE_CORS_ORIGIN, separated by commas]
    #[arg(long, value_name = "ORIGIN")]
    cors_origin: Vec<CorsOrigin> = "cors-origin",
    /// Connections served at once; more wait [default: 4096] [env: ZENOBE_MAX_CONNECTIONS]
    #[arg(long, value_name = "COUNT")]
    max_connections: u32 = "max-connections",
    /// Connections served at once to one address; more are closed [default: half of all, to this machine any number] [env: ZENOBE_MAX_CONNECTIONS_PER_PEER]
    #[arg(long, value_name = "COUNT")]
    max_connections_per_peer: u32 = "max-connections-per-peer",
    /// Seconds until a connection without a whole request head is closed [default: 60] [env: ZENOBE_IDLE_TIMEOUT_SECONDS]
    #[arg(long, value_name = "SECONDS")]
    idle_timeout_seconds: u32 = "idle-timeout-seconds",
    /// Seconds that a peer may stall while a body is sent or an answer is read [default: 30] [env: ZENOBE_STALL_TIMEOUT_SECONDS]
    #[arg(long, value_name = "SECONDS")]
    stall_timeout_seconds: u32 = "stall-timeout-seconds",
    /// Seconds that requests get to finish when the server is stopped [default: 10] [env: ZENOBE_SHUTDOWN_TIMEOUT_SECONDS]
    #[arg(long, value_name = "SECONDS")]
    shutdown_timeout_seconds: u32 = "shutdown-timeout-seconds",
    /// Tables that an account may have in a region [default: 2500, as on AWS] [env: ZENOBE_MAX_TABLES]
    #[arg(long, value_name = "COUNT")]
    max_tables: u32 = "max-tables",
    /// Error texts where AWS has two: classic, or newer as they are being rolled out since 2026 [default: classic] [env: ZENOBE_WORDING]
    #[arg(long, value_name = "classic|newer", value_parser = parse_wording)]
    wording: Wording = "wording",
    /// Directory below which triggers that commands add may write dead letters [default: none, so that they cannot] [env: ZENOBE_DEAD_LETTER_DIRECTORY]
    #[arg(long, value_name = "DIRECTORY")]
    dead_letter_directory: PathBuf = "dead-letter-directory",
    /// Open shards of each stream, which consumers read in parallel [default: 2] [env: ZENOBE_STREAM_SHARDS]
    #[arg(long, value_name = "COUNT")]
    stream_shards: u32 = "stream-shards",
    /// Seconds until the shards of a stream close and their children take over [default: 14400] [env: ZENOBE_STREAM_ROLLOVER_SECONDS]
    #[arg(long, value_name = "SECONDS")]
    stream_rollover_seconds: u32 = "stream-rollover-seconds",
    /// Records after which a shard closes, whatever its age [default: no limit] [env: ZENOBE_STREAM_SHARD_RECORDS]
    #[arg(long, value_name = "COUNT")]
    stream_shard_records: u32 = "stream-shard-records",
    /// Hours that stream records can be read [default: 24] [env: ZENOBE_STREAM_RETENTION_HOURS]
    #[arg(long, value_name = "HOURS")]
    stream_retention_hours: u32 = "stream-retention-hours",
    /// For tests: time stands still but for POST /_zenobe/clock [env: ZENOBE_DRIVEN_CLOCK]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    driven_clock: Switch = "driven-clock",
    /// What to log: error, warn, info, debug, or a filter such as warn,zenobe_engine=debug [default: info] [env: ZENOBE_LOG]
    #[arg(long, value_name = "FILTER")]
    log: String = "log",
    /// Format of the log: text or json [default: text] [env: ZENOBE_LOG_FORMAT]
    #[arg(long, value_name = "text|json")]
    log_format: LogFormat = "log-format",
}

/// Why the environment or a file holds no valid options.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    #[error("{name}: {fault}")]
    Value { name: String, fault: String },
    #[error("there is no option `{key}` in the configuration file")]
    UnknownKey { key: String },
    #[error("the configuration file is not valid TOML: {detail}")]
    Toml { detail: String },
    #[error("trigger {number} in the configuration file: {error}")]
    Trigger { number: usize, error: DefinitionError },
    #[error("triggers are written as [[trigger]] in the configuration file")]
    TriggerForm,
    #[error("there are two triggers `{name}` in the configuration file")]
    TriggerTwice { name: String },
}

impl Options {
    /// Reads `ZENOBE_…` variables with the given lookup.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Options, OptionsError> {
        let mut options = Options::default();
        for key in Options::KEYS {
            let name = environment_variable(key);
            let Some(text) = variable(&name).filter(|text| !text.is_empty()) else { continue };
            options.set(key, &text).map_err(|fault| OptionsError::Value { name, fault })?;
        }
        if let Some(CredentialsSource::File(path)) = &options.credentials {
            let keys = path.to_string_lossy().into_owned();
            options.credentials = Some(CredentialsSource::Inline(keys));
        }
        Ok(options)
    }

    pub fn from_toml(text: &str) -> Result<Options, OptionsError> {
        let table = toml_table(text)?;
        let mut options = Options::default();
        for (key, value) in table.iter().filter(|(key, _)| *key != TRIGGERS_KEY) {
            let fault = |fault: String| OptionsError::Value { name: key.clone(), fault };
            let text = match value {
                toml::Value::String(text) => text.clone(),
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(switch) => switch.to_string(),
                toml::Value::Array(texts) if Options::is_list(key) => {
                    let texts = texts.iter().map(toml::Value::as_str);
                    let texts = texts.collect::<Option<Vec<_>>>();
                    texts.ok_or_else(|| fault("expected a list of texts".into()))?.join(",")
                }
                _ => return Err(fault("expected a text, a whole number or a boolean".into())),
            };
            if !options.set(key, &text).map_err(fault)? {
                return Err(OptionsError::UnknownKey { key: key.clone() });
            }
        }
        Ok(options)
    }
}

/// The `[[trigger]]` tables of a configuration file.
pub fn triggers_from_toml(text: &str) -> Result<Vec<TriggerDefinition>, OptionsError> {
    let entries = match toml_table(text)?.remove(TRIGGERS_KEY) {
        None => return Ok(Vec::new()),
        Some(toml::Value::Array(entries)) => entries,
        Some(_) => return Err(OptionsError::TriggerForm),
    };
    let mut triggers: Vec<TriggerDefinition> = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        let fault = |error| OptionsError::Trigger { number: index + 1, error };
        let trigger = TriggerDefinition::parse(&json_of(entry)).map_err(fault)?;
        if triggers.iter().any(|other| other.name == trigger.name) {
            return Err(OptionsError::TriggerTwice { name: trigger.name });
        }
        triggers.push(trigger);
    }
    Ok(triggers)
}

fn json_of(value: toml::Value) -> serde_json::Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(switch) => switch.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(values) => values.into_iter().map(json_of).collect(),
        toml::Value::Table(members) => {
            let members = members.into_iter().map(|(name, value)| (name, json_of(value)));
            serde_json::Value::Object(members.collect())
        }
    }
}

fn toml_table(text: &str) -> Result<toml::Table, OptionsError> {
    text.parse()
        .map_err(|error: toml::de::Error| OptionsError::Toml { detail: one_line(error.message()) })
}

pub fn environment_variable(key: &str) -> String {
    format!("ZENOBE_{}", key.replace('-', "_").to_ascii_uppercase())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_its_key_and_its_variable_in_the_help() {
        use clap::CommandFactory;
        let mut command = crate::cli::Arguments::command();
        let serve = command.find_subcommand_mut("serve").expect("serve is a command");
        let help = one_line(&serve.render_long_help().to_string());
        for key in Options::KEYS {
            assert!(help.contains(&format!("--{key}")), "{key}");
            assert!(help.contains(&format!("[env: {}", environment_variable(key))), "{key}");
        }
        let mut flags: Vec<_> = serve.get_arguments().filter_map(clap::Arg::get_long).collect();
        flags.retain(|flag| !["config", "help"].contains(flag));
        assert_eq!(flags, Options::KEYS);
    }

    #[test]
    fn stronger_sources_win_option_by_option() {
        let strong = Options { region: Some("a".into()), ..Options::default() };
        let weak =
            Options { region: Some("b".into()), account: Some("1".into()), ..Options::default() };
        let both = strong.or(weak);
        assert_eq!((both.region.as_deref(), both.account.as_deref()), (Some("a"), Some("1")));
    }

    #[test]
    fn the_environment_and_a_file_say_the_same_things() {
        let from_environment = Options::from_environment(|name| match name {
            "ZENOBE_CACHE_MB" => Some("7".into()),
            "ZENOBE_MEMORY" => Some("1".into()),
            "ZENOBE_LOG_FORMAT" => Some("json".into()),
            _ => None,
        });
        let from_file = Options::from_toml("cache-mb = 7\nmemory = true\nlog-format = \"json\"\n");
        assert_eq!(from_environment, from_file);
        assert_eq!(from_file.unwrap().cache_mb, Some(7));
    }

    #[test]
    fn lists_are_separated_by_commas_or_written_as_lists() {
        let hosts = ["a", "*.b"].map(|host| host.parse().unwrap()).to_vec();
        let expected = Options { allowed_host: Some(hosts), ..Options::default() };
        let from_environment = Options::from_environment(|name| {
            (name == "ZENOBE_ALLOWED_HOST").then(|| "a, *.b".into())
        });
        assert_eq!(from_environment.as_ref(), Ok(&expected));
        assert_eq!(Options::from_toml("allowed-host = ['a', '*.b']").as_ref(), Ok(&expected));
        assert_eq!(Options::from_toml("allowed-host = 'a,*.b'").as_ref(), Ok(&expected));
        use clap::Parser;
        let arguments = ["zenobe", "serve", "--allowed-host", "a", "--allowed-host", "*.b"];
        let command = crate::cli::Arguments::parse_from(arguments).command;
        let crate::cli::Command::Serve(serve) = command else { panic!("{command:?}") };
        assert_eq!(serve.options, expected);
    }

    #[test]
    fn a_file_may_hold_triggers() {
        let text = "region = 'r'\n[[trigger]]\nname = 'a'\ntable = 'ttt'\nurl = 'http://h/'\n\
            batch-size = 5\nfilters = ['{\"eventName\":[\"INSERT\"]}']\n";
        assert_eq!(Options::from_toml(text).unwrap().region.as_deref(), Some("r"));
        let triggers = triggers_from_toml(text).unwrap();
        assert_eq!((triggers.len(), triggers[0].batch.size), (1, 5));
        assert_eq!(triggers_from_toml("region = 'r'").unwrap().len(), 0);
        let fault = |text: &str| triggers_from_toml(text).unwrap_err().to_string();
        assert_eq!(
            fault("[[trigger]]\nname = 'a'"),
            "trigger 1 in the configuration file: a trigger needs `table`"
        );
        assert_eq!(
            fault("trigger = 1"),
            "triggers are written as [[trigger]] in the configuration file"
        );
        assert_eq!(
            fault(&format!("{text}{}", text.replace("region = 'r'", ""))),
            "there are two triggers `a` in the configuration file"
        );
    }

    #[test]
    fn faults_name_the_option() {
        let from_file = |text: &str| Options::from_toml(text).unwrap_err().to_string();
        assert_eq!(
            from_file("cache_mb = 7"),
            "there is no option `cache_mb` in the configuration file"
        );
        assert_eq!(
            from_file("durability = \"no\""),
            "durability: `no` is not valid: expected sync or os"
        );
        assert_eq!(
            from_file("listen = [1]"),
            "listen: expected a text, a whole number or a boolean"
        );
        assert!(from_file("listen = ").starts_with("the configuration file is not valid TOML: "));
        let from_environment =
            Options::from_environment(|name| (name == "ZENOBE_MEMORY").then(|| "maybe".into()));
        assert_eq!(
            from_environment.unwrap_err().to_string(),
            "ZENOBE_MEMORY: `maybe` is not valid: expected true or false"
        );
    }
}
