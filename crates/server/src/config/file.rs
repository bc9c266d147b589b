//! The configuration file: options by name, and triggers. Every fault names its position.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::builder::OsStr;
use clap::{Arg, Command};
use toml::de::DeTable;

use super::rejected_value::value_fault;
use super::suggestion::{did_you_mean, suggest};
use crate::triggers::{DefinitionError, TriggerDefinition};

/// The only key that is not an option.
const TRIGGERS_KEY: &str = "trigger";

#[derive(Debug, Default)]
pub struct ConfigurationFile {
    options: Vec<FileEntry>,
    pub triggers: Vec<TriggerDefinition>,
}

/// An option from the file: valid arguments for clap.
#[derive(Debug)]
struct FileEntry {
    id: String,
    texts: Vec<String>,
}

/// What is wrong, and where.
#[derive(Debug, thiserror::Error)]
#[error("{}:{place}: {problem}", path.display())]
pub struct FileError {
    path: PathBuf,
    place: FilePosition,
    problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FilePosition {
    line: usize,
    column: usize,
}

impl fmt::Display for FilePosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.line, self.column)
    }
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("this is not valid TOML: {detail} (in `{line}`)")]
    Syntax { detail: String, line: String },
    #[error("there is no option `{key}`{}", did_you_mean(suggestion.as_deref()))]
    UnknownKey { key: String, suggestion: Option<String> },
    #[error("{key}: expected a text, a whole number, a boolean or a list of them")]
    Kind { key: String },
    #[error("{key}: {fault}")]
    Value { key: String, fault: String },
    #[error("triggers are written as [[trigger]]")]
    TriggerForm,
    #[error("trigger {number}: {error}")]
    Trigger { number: usize, error: DefinitionError },
    #[error("a trigger named `{name}` already exists")]
    TriggerTwice { name: String },
}

impl ConfigurationFile {
    /// Parses a file's text. `command` defines the options.
    pub fn parse(
        path: &Path,
        text: &str,
        command: &Command,
    ) -> Result<ConfigurationFile, FileError> {
        let fail = |(offset, problem): LocatedProblem| {
            let place = place_of(text, offset);
            FileError { path: path.to_owned(), place, problem }
        };
        let values = parse_toml(text).map_err(fail)?;
        let spans = DeTable::parse(text).map_err(|error| fail(syntax(text, &error)))?;
        let file = ParsedFile { values, spans: spans.get_ref() };
        let options = file.options(command).map_err(fail)?;
        let triggers = file.triggers().map_err(fail)?;
        Ok(ConfigurationFile { options, triggers })
    }

    /// Whether the file sets the option with this id.
    pub fn gives(&self, id: &str) -> bool {
        self.options.iter().any(|entry| entry.id == id)
    }

    /// The command with the file's values as defaults, which flags and variables override.
    pub fn as_defaults(&self, command: Command) -> Command {
        self.options.iter().fold(command, |command, FileEntry { id, texts }| {
            command.mut_arg(id, |option| option.default_values(texts.iter().map(OsStr::from)))
        })
    }
}

/// A problem and the offset where it starts.
type LocatedProblem = (usize, Problem);

/// The same table twice: its values and their positions.
struct ParsedFile<'a> {
    values: toml::Table,
    spans: &'a DeTable<'a>,
}

impl ParsedFile<'_> {
    fn options(&self, command: &Command) -> Result<Vec<FileEntry>, LocatedProblem> {
        let entries = self.values.iter().filter(|(key, _)| *key != TRIGGERS_KEY);
        let read = |(key, value): (&String, &toml::Value)| {
            read_option(command, key, value)
                .map_err(|problem| (key_offset(self.spans, key), problem))
        };
        entries.map(read).collect()
    }

    /// The `[[trigger]]` tables.
    fn triggers(&self) -> Result<Vec<TriggerDefinition>, LocatedProblem> {
        let entries = match self.values.get(TRIGGERS_KEY) {
            None => return Ok(Vec::new()),
            Some(toml::Value::Array(entries)) => entries.as_slice(),
            Some(_) => return Err((key_offset(self.spans, TRIGGERS_KEY), Problem::TriggerForm)),
        };
        let mut triggers: Vec<TriggerDefinition> = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let trigger = TriggerDefinition::parse(&json_of(entry)).map_err(|error| {
                let offset = self.trigger_offset(index, error.setting());
                (offset, Problem::Trigger { number: index + 1, error })
            })?;
            if triggers.iter().any(|other| other.name == trigger.name) {
                let offset = self.trigger_offset(index, Some("name"));
                return Err((offset, Problem::TriggerTwice { name: trigger.name }));
            }
            triggers.push(trigger);
        }
        Ok(triggers)
    }

    /// The position of a trigger's setting, or else of the trigger.
    fn trigger_offset(&self, index: usize, setting: Option<&str>) -> usize {
        let triggers = self.spans.get(TRIGGERS_KEY).and_then(|value| value.get_ref().as_array());
        let Some(entry) = triggers.and_then(|triggers| triggers.get(index)) else { return 0 };
        let settings = entry.get_ref().as_table().into_iter().flatten();
        let mut keys = settings.map(|(key, _)| key);
        let named = keys.find(|key| Some(key.get_ref().replace('-', "_").as_str()) == setting);
        named.map_or(entry.span().start, |key| key.span().start)
    }
}

fn read_option(command: &Command, key: &str, value: &toml::Value) -> Result<FileEntry, Problem> {
    let options = || command.get_arguments().filter(|option| option.get_id() != "config");
    let Some(option) = options().find(|option| option.get_long() == Some(key)) else {
        let suggestion = suggest(key, options().filter_map(Arg::get_long)).map(str::to_owned);
        return Err(Problem::UnknownKey { key: key.to_owned(), suggestion });
    };
    let texts = match value {
        toml::Value::Array(values) => values.iter().map(scalar_text).collect(),
        scalar => scalar_text(scalar).map(|text| vec![text]),
    };
    let texts: Vec<String> = texts.ok_or_else(|| Problem::Kind { key: key.to_owned() })?;
    match value_fault(option, &texts) {
        None => Ok(FileEntry { id: option.get_id().to_string(), texts }),
        Some(fault) => Err(Problem::Value { key: key.to_owned(), fault }),
    }
}

fn scalar_text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(switch) => Some(switch.to_string()),
        _ => None,
    }
}

fn json_of(value: &toml::Value) -> serde_json::Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(switch) => (*switch).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(values) => values.iter().map(json_of).collect(),
        toml::Value::Table(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), json_of(value)));
            serde_json::Value::Object(members.collect())
        }
    }
}

fn parse_toml(text: &str) -> Result<toml::Table, LocatedProblem> {
    text.parse().map_err(|error: toml::de::Error| syntax(text, &error))
}

fn syntax(text: &str, error: &toml::de::Error) -> LocatedProblem {
    let offset = error.span().map_or(0, |span| span.start);
    let line = text.lines().nth(place_of(text, offset).line - 1).unwrap_or_default();
    let detail = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    (offset, Problem::Syntax { detail, line: line.trim().to_owned() })
}

fn key_offset(table: &DeTable<'_>, key: &str) -> usize {
    let found = table.iter().find(|(name, _)| name.get_ref() == key);
    found.map_or(0, |(name, _)| name.span().start)
}

/// Lines and columns count from one. A fault at the end of a line belongs to that line, not to the
/// next.
fn place_of(text: &str, offset: usize) -> FilePosition {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let line_start =
        before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
    FilePosition { line, column }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ConfigurationFile, FileError> {
        let command = crate::cli::command();
        let serve = command.find_subcommand("serve").expect("it is a command");
        ConfigurationFile::parse(Path::new("z.toml"), text, serve)
    }

    fn fault(text: &str) -> String {
        parse(text).expect_err(text).to_string()
    }

    #[test]
    fn a_file_may_hold_triggers() {
        let text = "region = 'r'\n[[trigger]]\nname = 'a'\ntable = 'ttt'\nurl = 'http://h/'\n\
            batch-size = 5\nfilters = ['{\"eventName\":[\"INSERT\"]}']\n";
        let file = parse(text).unwrap();
        assert!(file.gives("region") && !file.gives("listen"));
        assert_eq!((file.triggers.len(), file.triggers[0].batch.size), (1, 5));
        assert_eq!(parse("region = 'r'").unwrap().triggers.len(), 0);
        let again = text.replace("region = 'r'\n", "");
        let twice = "z.toml:9:1: a trigger named `a` already exists";
        assert_eq!(fault(&format!("{text}{again}")), twice);
        assert_eq!(fault("trigger = 1"), "z.toml:1:1: triggers are written as [[trigger]]");
    }

    #[test]
    fn faults_of_triggers_name_the_line_and_the_key() {
        assert_eq!(
            fault("[[trigger]]\nname = 'a'\ntabel = 'ttt'\nurl = 'http://h/'"),
            "z.toml:3:1: trigger 1: there is no trigger setting `tabel`; did you mean `table`?"
        );
        assert_eq!(
            fault("\n[[trigger]]\nname = 'a'\n"),
            "z.toml:2:1: trigger 1: a trigger needs `table`"
        );
        assert_eq!(
            fault("[[trigger]]\nname = 'a'\ntable = 'ttt'\nurl = 'http://h/'\nbatch-size = 0"),
            "z.toml:5:1: trigger 1: `batch_size` must be a whole number from 1 to 10000"
        );
    }

    #[test]
    fn faults_of_options_name_the_line_and_the_key() {
        assert_eq!(
            fault("memory = true\ncache-md = 7"),
            "z.toml:2:1: there is no option `cache-md`; did you mean `cache-mb`?"
        );
        assert_eq!(fault("colour = 1"), "z.toml:1:1: there is no option `colour`");
        assert_eq!(
            fault("durability = \"no\""),
            "z.toml:1:1: durability: `no` is not valid: expected sync or os"
        );
        assert_eq!(
            fault("cache-mb = 0"),
            "z.toml:1:1: cache-mb: `0` is not valid: it must be at least 1"
        );
        assert_eq!(
            fault("listen = 1.5"),
            "z.toml:1:1: listen: expected a text, a whole number, a boolean or a list of them"
        );
        assert_eq!(fault("config = 'x'"), "z.toml:1:1: there is no option `config`");
        assert_eq!(fault("memory = [true, true]"), "z.toml:1:1: memory: expected one value");
    }

    #[test]
    fn faults_of_syntax_show_the_line() {
        let fault = fault("region = 'r'\nlisten =\nmemory = true\n");
        assert!(fault.starts_with("z.toml:2:"), "{fault}");
        assert!(fault.contains("this is not valid TOML: "), "{fault}");
        assert!(fault.ends_with("(in `listen =`)"), "{fault}");
    }
}
