//! The definition of a trigger: one form for the configuration file, the admin endpoint and the
//! store.
//!
//! Setting names have hyphens in TOML and underscores in JSON; both are accepted everywhere.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};
use zenobe_api::{is_name_character, is_table_name};

use super::batcher::BatchLimits;
use super::delivery::{Backoff, DeliveryRules};
use super::filter::{FilterPattern, PatternError};
use crate::config::{did_you_mean, suggest};
use crate::outbound::{Url, UrlError};

const NAME_LENGTH_MAX: usize = 128;
const BATCH_SIZE_MAX: u64 = 10_000;
const BATCHING_WINDOW_MS_MAX: u64 = 300_000;
const RETRY_ATTEMPTS_MAX: u64 = 10_000;
const RECORD_AGE_SECONDS_MAX: u64 = 7 * 24 * 60 * 60;
const FILTERS_MAX: usize = 10;
const TIMEOUT_MS_MAX: u64 = 15 * 60 * 1_000;

#[derive(Debug, Clone, PartialEq)]
pub struct TriggerDefinition {
    pub name: String,
    pub table: String,
    pub url: Url,
    pub batch: BatchSettings,
    pub starting_position: StartingPosition,
    pub filters: Vec<RecordFilter>,
    pub rules: DeliveryRules,
    pub reports_batch_item_failures: bool,
    pub dead_letter: Option<DeadLetterDestination>,
    /// How long the endpoint may take to respond.
    pub timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSettings {
    pub size: usize,
    pub window: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartingPosition {
    TrimHorizon,
    Latest,
    AtTimestamp { timestamp_ms: u64 },
}

/// A pattern and its text, to be shown and stored as given.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordFilter {
    pub text: String,
    pub pattern: FilterPattern,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeadLetterDestination {
    File {
        path: PathBuf,
        /// The directory that the file must not leave, if there is one.
        root: Option<PathBuf>,
    },
    Url(Url),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    #[error("a trigger is an object of settings")]
    NotAnObject,
    #[error("there is no trigger setting `{0}`{hint}", hint = did_you_mean(suggest(_0, SETTINGS)))]
    Unknown(String),
    #[error("a trigger needs `{0}`")]
    Missing(&'static str),
    #[error("`{name}` must be {expected}")]
    Value { name: &'static str, expected: String },
    #[error("`{name}`: {error}")]
    Url { name: &'static str, error: UrlError },
    #[error("filter {number}: {error}")]
    Filter { number: usize, error: PatternError },
}

/// The names of all settings.
const SETTINGS: [&str; 16] = [
    "name",
    "table",
    "url",
    "batch_size",
    "batching_window_ms",
    "starting_position",
    "starting_timestamp",
    "filters",
    "maximum_retry_attempts",
    "maximum_record_age_seconds",
    "bisect_on_error",
    "backoff_ms",
    "backoff_max_ms",
    "report_batch_item_failures",
    "dead_letter",
    "timeout_ms",
];

impl DefinitionError {
    /// The setting at fault, if it is in the definition.
    pub fn setting(&self) -> Option<&str> {
        match self {
            DefinitionError::Unknown(name) => Some(name),
            DefinitionError::Value { name, .. } | DefinitionError::Url { name, .. } => Some(name),
            DefinitionError::Filter { .. } => Some("filters"),
            DefinitionError::NotAnObject | DefinitionError::Missing(_) => None,
        }
    }
}

impl TriggerDefinition {
    pub fn parse(value: &Value) -> Result<TriggerDefinition, DefinitionError> {
        let mut settings = GivenSettings::new(value)?;
        let definition = TriggerDefinition {
            name: settings.text("name")?.ok_or(DefinitionError::Missing("name"))?,
            table: settings.text("table")?.ok_or(DefinitionError::Missing("table"))?,
            url: settings.url()?,
            batch: BatchSettings {
                size: settings.number("batch_size", 1, BATCH_SIZE_MAX)?.unwrap_or(100) as usize,
                window: settings.milliseconds(
                    "batching_window_ms",
                    0,
                    BATCHING_WINDOW_MS_MAX,
                    0,
                )?,
            },
            starting_position: settings.starting_position()?,
            filters: settings.filters()?,
            rules: DeliveryRules {
                retries_max: settings
                    .number_or_unbounded("maximum_retry_attempts", 0, RETRY_ATTEMPTS_MAX)?
                    .map(|attempts| attempts as u32),
                record_age_ms_max: settings
                    .number_or_unbounded("maximum_record_age_seconds", 1, RECORD_AGE_SECONDS_MAX)?
                    .map(|seconds| seconds * 1_000),
                bisects_on_error: settings.switch("bisect_on_error")?,
                backoff: Backoff {
                    first: settings.milliseconds("backoff_ms", 1, TIMEOUT_MS_MAX, 200)?,
                    max: settings.milliseconds("backoff_max_ms", 1, TIMEOUT_MS_MAX, 30_000)?,
                },
            },
            reports_batch_item_failures: settings.switch("report_batch_item_failures")?,
            dead_letter: settings.dead_letter()?,
            timeout: settings.milliseconds("timeout_ms", 1, TIMEOUT_MS_MAX, 30_000)?,
        };
        settings.finish();
        if !is_name(&definition.name) {
            let expected = format!("1 to {NAME_LENGTH_MAX} of a-z, A-Z, 0-9, `.`, `_` and `-`");
            return Err(DefinitionError::Value { name: "name", expected });
        }
        if !is_table_name(&definition.table) {
            let expected = "a table's name: 3 to 255 of a-z, A-Z, 0-9, `.`, `_` and `-`".to_owned();
            return Err(DefinitionError::Value { name: "table", expected });
        }
        Ok(definition)
    }

    pub fn to_json(&self) -> Value {
        let unbounded = |bound: Option<u64>| bound.map_or(json!(-1), |bound| json!(bound));
        let milliseconds = |duration: Duration| duration.as_millis() as u64;
        let DeliveryRules { retries_max, record_age_ms_max, bisects_on_error, backoff } =
            self.rules;
        let mut settings = json!({
            "name": self.name,
            "table": self.table,
            "url": self.url.to_string(),
            "batch_size": self.batch.size,
            "batching_window_ms": milliseconds(self.batch.window),
            "starting_position": self.starting_position.name(),
            "filters": self.filters.iter().map(|filter| &filter.text).collect::<Vec<_>>(),
            "maximum_retry_attempts": unbounded(retries_max.map(u64::from)),
            "maximum_record_age_seconds": unbounded(record_age_ms_max.map(|age_ms| age_ms / 1_000)),
            "bisect_on_error": bisects_on_error,
            "backoff_ms": milliseconds(backoff.first),
            "backoff_max_ms": milliseconds(backoff.max),
            "report_batch_item_failures": self.reports_batch_item_failures,
            "timeout_ms": milliseconds(self.timeout),
        });
        if let StartingPosition::AtTimestamp { timestamp_ms } = self.starting_position {
            settings["starting_timestamp"] = json!(timestamp_ms as f64 / 1_000.0);
        }
        if let Some(destination) = &self.dead_letter {
            settings["dead_letter"] = json!(destination.to_string());
        }
        settings
    }

    pub fn patterns(&self) -> Vec<FilterPattern> {
        self.filters.iter().map(|filter| filter.pattern.clone()).collect()
    }

    pub fn batch_limits(&self) -> BatchLimits {
        BatchLimits { records_max: self.batch.size, window: self.batch.window }
    }
}

impl StartingPosition {
    pub fn name(self) -> &'static str {
        match self {
            StartingPosition::TrimHorizon => "TRIM_HORIZON",
            StartingPosition::Latest => "LATEST",
            StartingPosition::AtTimestamp { .. } => "AT_TIMESTAMP",
        }
    }
}

impl DeadLetterDestination {
    fn parse(text: &str) -> Result<DeadLetterDestination, DefinitionError> {
        if text.starts_with("http://") || text.starts_with("https://") {
            let error = |error| DefinitionError::Url { name: "dead_letter", error };
            return Ok(DeadLetterDestination::Url(text.parse().map_err(error)?));
        }
        match text.strip_prefix("file:").unwrap_or(text) {
            "" => {
                let expected = "a file or a URL".to_owned();
                Err(DefinitionError::Value { name: "dead_letter", expected })
            }
            path => Ok(DeadLetterDestination::File { path: path.into(), root: None }),
        }
    }
}

/// Why a trigger added by command may not write its dead letters to this place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeadLetterRefusal {
    #[error(
        "dead letters of triggers that are added by command go to a URL, or to a file below the directory that the \
         server was started with (--dead-letter-directory), and it was started with none; the server's \
         configuration file may name any file"
    )]
    NoDirectory,
    #[error("the dead-letter file {} is not below {}", path.display(), directory.display())]
    Outside { path: PathBuf, directory: PathBuf },
}

impl DeadLetterDestination {
    /// The destination of a trigger that anybody may have added: a file must stay below the
    /// server's dead-letter directory, and a relative path starts there.
    pub fn bound_to(
        &self,
        directory: Option<&Path>,
    ) -> Result<DeadLetterDestination, DeadLetterRefusal> {
        let DeadLetterDestination::File { path, .. } = self else { return Ok(self.clone()) };
        let directory = directory.ok_or(DeadLetterRefusal::NoDirectory)?;
        let below = path.strip_prefix(directory).unwrap_or(path);
        let mut parts = below.components().peekable();
        let is_below = parts.peek().is_some() && parts.all(|it| matches!(it, Component::Normal(_)));
        if !is_below {
            let (path, directory) = (path.clone(), directory.to_owned());
            return Err(DeadLetterRefusal::Outside { path, directory });
        }
        let root = Some(directory.to_owned());
        Ok(DeadLetterDestination::File { path: directory.join(below), root })
    }
}

impl fmt::Display for DeadLetterDestination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeadLetterDestination::File { path, .. } => write!(out, "file:{}", path.display()),
            DeadLetterDestination::Url(url) => write!(out, "{url}"),
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=NAME_LENGTH_MAX).contains(&name.len()) && name.chars().all(is_name_character)
}

/// The given settings, taken one by one.
struct GivenSettings {
    left: Map<String, Value>,
}

impl GivenSettings {
    fn new(value: &Value) -> Result<GivenSettings, DefinitionError> {
        let given = value.as_object().ok_or(DefinitionError::NotAnObject)?;
        let left = given.iter().filter(|(_, value)| !value.is_null());
        let left: Map<String, Value> =
            left.map(|(name, value)| (name.replace('-', "_"), value.clone())).collect();
        // Checked first, because a missing setting may only be misspelt.
        match left.keys().find(|name| !SETTINGS.contains(&name.as_str())) {
            Some(unknown) => Err(DefinitionError::Unknown(unknown.clone())),
            None => Ok(GivenSettings { left }),
        }
    }

    /// By now every known setting has been taken, so tests notice a name in `SETTINGS` that nobody
    /// reads.
    fn finish(self) {
        debug_assert!(self.left.is_empty(), "{:?}", self.left);
    }

    fn text(&mut self, name: &'static str) -> Result<Option<String>, DefinitionError> {
        match self.left.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(_) => Err(DefinitionError::Value { name, expected: "a text".into() }),
        }
    }

    fn switch(&mut self, name: &'static str) -> Result<bool, DefinitionError> {
        match self.left.remove(name) {
            None => Ok(false),
            Some(Value::Bool(switch)) => Ok(switch),
            Some(_) => Err(DefinitionError::Value { name, expected: "true or false".into() }),
        }
    }

    fn number(
        &mut self,
        name: &'static str,
        min: u64,
        max: u64,
    ) -> Result<Option<u64>, DefinitionError> {
        let Some(value) = self.left.remove(name) else { return Ok(None) };
        match value.as_u64().filter(|number| (min..=max).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let expected = format!("a whole number from {min} to {max}");
                Err(DefinitionError::Value { name, expected })
            }
        }
    }

    /// As in Lambda, -1 means unlimited, which is the default.
    fn number_or_unbounded(
        &mut self,
        name: &'static str,
        min: u64,
        max: u64,
    ) -> Result<Option<u64>, DefinitionError> {
        if self.left.get(name).and_then(Value::as_i64) == Some(-1) {
            self.left.remove(name);
        }
        self.number(name, min, max)
    }

    fn milliseconds(
        &mut self,
        name: &'static str,
        min: u64,
        max: u64,
        default: u64,
    ) -> Result<Duration, DefinitionError> {
        Ok(Duration::from_millis(self.number(name, min, max)?.unwrap_or(default)))
    }

    fn url(&mut self) -> Result<Url, DefinitionError> {
        let text = self.text("url")?.ok_or(DefinitionError::Missing("url"))?;
        text.parse().map_err(|error| DefinitionError::Url { name: "url", error })
    }

    fn starting_position(&mut self) -> Result<StartingPosition, DefinitionError> {
        let timestamp = self.left.remove("starting_timestamp");
        let position = self.text("starting_position")?;
        let fault =
            |name, expected: &str| DefinitionError::Value { name, expected: expected.into() };
        let position = match (position.as_deref(), &timestamp) {
            (None | Some("AT_TIMESTAMP"), Some(timestamp)) => {
                let seconds = timestamp.as_f64().filter(|seconds| *seconds >= 0.0);
                let expected = "a number of seconds since the epoch";
                let seconds = seconds.ok_or_else(|| fault("starting_timestamp", expected))?;
                StartingPosition::AtTimestamp { timestamp_ms: (seconds * 1_000.0).round() as u64 }
            }
            (Some("AT_TIMESTAMP"), None) => {
                return Err(DefinitionError::Missing("starting_timestamp"));
            }
            (None | Some("TRIM_HORIZON"), None) => StartingPosition::TrimHorizon,
            (Some("LATEST"), None) => StartingPosition::Latest,
            (Some("TRIM_HORIZON" | "LATEST"), Some(_)) => {
                return Err(fault("starting_timestamp", "left out unless starting AT_TIMESTAMP"));
            }
            (Some(_), _) => {
                return Err(fault("starting_position", "TRIM_HORIZON, LATEST or AT_TIMESTAMP"));
            }
        };
        Ok(position)
    }

    /// Patterns are JSON texts, as in Lambda, or the JSON itself.
    fn filters(&mut self) -> Result<Vec<RecordFilter>, DefinitionError> {
        let expected = || format!("a list of at most {FILTERS_MAX} patterns");
        let given = match self.left.remove("filters") {
            None => return Ok(Vec::new()),
            Some(Value::Array(filters)) if filters.len() <= FILTERS_MAX => filters,
            Some(_) => {
                return Err(DefinitionError::Value { name: "filters", expected: expected() });
            }
        };
        let parse = |(index, filter): (usize, Value)| {
            let text = match filter {
                Value::String(text) => text,
                value => value.to_string(),
            };
            let fault = |error| DefinitionError::Filter { number: index + 1, error };
            Ok(RecordFilter { pattern: FilterPattern::parse(&text).map_err(fault)?, text })
        };
        given.into_iter().enumerate().map(parse).collect()
    }

    fn dead_letter(&mut self) -> Result<Option<DeadLetterDestination>, DefinitionError> {
        self.text("dead_letter")?.map(|text| DeadLetterDestination::parse(&text)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: Value) -> Value {
        let mut settings = json!({"name": "n", "table": "ttt", "url": "http://localhost:9000/f"});
        settings[name] = value;
        settings
    }

    #[test]
    fn the_defaults_are_lambdas() {
        let definition = TriggerDefinition::parse(&with("name", json!("a.b-c_1"))).unwrap();
        assert_eq!((definition.batch.size, definition.batch.window), (100, Duration::ZERO));
        assert_eq!(definition.starting_position, StartingPosition::TrimHorizon);
        assert_eq!(definition.rules.retries_max, None);
        assert_eq!(definition.rules.record_age_ms_max, None);
        assert!(!definition.rules.bisects_on_error && !definition.reports_batch_item_failures);
    }

    #[test]
    fn a_definition_survives_being_written_and_read() {
        let given = json!({
            "name": "n", "table": "ttt", "url": "http://h/f?x", "batch-size": 7,
            "batching-window-ms": 250, "starting-position": "AT_TIMESTAMP",
            "starting-timestamp": 1.5, "filters": ["{\"a\":[1]}", {"b": ["x"]}],
            "maximum-retry-attempts": 3, "maximum-record-age-seconds": 60, "bisect-on-error": true,
            "backoff-ms": 5, "backoff-max-ms": 50, "report-batch-item-failures": true,
            "timeout-ms": 1000, "dead-letter": "/tmp/x.jsonl",
        });
        let definition = TriggerDefinition::parse(&given).unwrap();
        let start = StartingPosition::AtTimestamp { timestamp_ms: 1_500 };
        assert_eq!(definition.starting_position, start);
        assert_eq!(definition.to_json()["dead_letter"], "file:/tmp/x.jsonl");
        assert_eq!(TriggerDefinition::parse(&definition.to_json()).unwrap(), definition);
    }

    #[test]
    fn files_of_added_triggers_stay_below_their_directory() {
        let bound = |path: &str, directory: Option<&str>| {
            let given = DeadLetterDestination::parse(path).unwrap();
            given.bound_to(directory.map(Path::new)).map(|bound| bound.to_string())
        };
        let letters = Some("/var/letters");
        assert_eq!(bound("file:/etc/cron.d/x", None), Err(DeadLetterRefusal::NoDirectory));
        assert_eq!(bound("x.jsonl", letters).unwrap(), "file:/var/letters/x.jsonl");
        assert_eq!(bound("/var/letters/a/x", letters).unwrap(), "file:/var/letters/a/x");
        assert_eq!(bound("http://h/f", None).unwrap(), "http://h/f");
        let outside =
            ["/etc/x", "../x", "a/../../x", "/var/letters/../x", "/var/letters", "/", ".."];
        for path in outside {
            let refused = bound(path, letters);
            assert!(
                matches!(refused, Err(DeadLetterRefusal::Outside { .. })),
                "{path}: {refused:?}"
            );
        }
    }

    #[test]
    fn faults_name_the_setting() {
        let check = |given: Value, expected: &str| {
            let fault = TriggerDefinition::parse(&given).expect_err(expected).to_string();
            assert_eq!(fault, expected);
        };
        check(json!([]), "a trigger is an object of settings");
        check(json!({"name": "n", "table": "ttt"}), "a trigger needs `url`");
        check(json!({"table": "ttt", "url": "http://h/"}), "a trigger needs `name`");
        check(with("colour", json!(1)), "there is no trigger setting `colour`");
        check(
            json!({"name": "n", "tabel": "ttt", "url": "http://h/"}),
            "there is no trigger setting `tabel`; did you mean `table`?",
        );
        check(
            with("name", json!("a/b")),
            "`name` must be 1 to 128 of a-z, A-Z, 0-9, `.`, `_` and `-`",
        );
        check(
            with("table", json!("tt")),
            "`table` must be a table's name: 3 to 255 of a-z, A-Z, 0-9, `.`, `_` and `-`",
        );
        check(with("batch_size", json!(0)), "`batch_size` must be a whole number from 1 to 10000");
        check(
            with("maximum_retry_attempts", json!(-2)),
            "`maximum_retry_attempts` must be a whole number from 0 to 10000",
        );
        check(
            with("starting_position", json!("OLDEST")),
            "`starting_position` must be TRIM_HORIZON, LATEST or AT_TIMESTAMP",
        );
        check(
            with("starting_position", json!("AT_TIMESTAMP")),
            "a trigger needs `starting_timestamp`",
        );
        check(
            with("filters", json!([{"a": ["x"]}, {"a": "x"}])),
            "filter 2: $.a: expected an object of patterns or a list of matchers",
        );
        check(
            with("url", json!("https://h/")),
            "`url`: `https://h/` needs TLS, which is not available here: use http:// and a proxy on \
             this machine",
        );
        check(with("dead_letter", json!("file:")), "`dead_letter` must be a file or a URL");
        check(with("bisect_on_error", json!("yes")), "`bisect_on_error` must be true or false");
    }
}
