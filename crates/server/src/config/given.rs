//! The options as given: a flag overrides the environment, the environment the file, and the file
//! the default.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches};

use super::environment::{UnknownVariable, unknown_variables};
use super::file::{ConfigurationFile, FileError};
use super::local::{LocalFlags, LocalMode};
use super::options::Options;
use super::values::CredentialsSource;
use crate::triggers::TriggerDefinition;

/// Where an option's value came from, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OptionSource {
    Default,
    File,
    Environment,
    Flag,
}

#[derive(Debug)]
pub struct Given {
    pub options: Options,
    pub triggers: Vec<TriggerDefinition>,
    pub unknown_variables: Vec<UnknownVariable>,
    /// Set by `zenobe local`.
    pub local: Option<LocalMode>,
    sources: BTreeMap<String, OptionSource>,
}

#[derive(Debug, thiserror::Error)]
pub enum GivenError {
    #[error(transparent)]
    Arguments(#[from] clap::Error),
    #[error("cannot read the configuration file {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    File(#[from] FileError),
}

impl Given {
    /// Reads the configuration file that `matches` names, if any, and merges all sources. `matches`
    /// belongs to the whole command line `arguments`, whose subcommand has the options.
    pub fn load(
        command: &Command,
        arguments: &[OsString],
        matches: &ArgMatches,
    ) -> Result<Given, GivenError> {
        let (name, given) = matches.subcommand().expect("options belong to a subcommand");
        let options = command.find_subcommand(name).expect("clap has just found it");
        let unknown = unknown_variables(command, std::env::vars_os().filter_map(unicode_name));
        let Some(path) = given.get_one::<PathBuf>("config") else {
            return Given::new(name, given, ConfigurationFile::default(), unknown);
        };
        let text = std::fs::read_to_string(path)
            .map_err(|error| GivenError::Unreadable { path: path.clone(), error })?;
        let file = ConfigurationFile::parse(path, &text, options)?;
        let command = command.clone().mut_subcommand(name, |options| file.as_defaults(options));
        let matches = command.try_get_matches_from(arguments)?;
        let (_, given) = matches.subcommand().expect("it was there before");
        Given::new(name, given, file, unknown)
    }

    fn new(
        command: &str,
        matches: &ArgMatches,
        file: ConfigurationFile,
        unknown_variables: Vec<UnknownVariable>,
    ) -> Result<Given, GivenError> {
        let source = |id: &str| match matches.value_source(id) {
            Some(ValueSource::CommandLine) => OptionSource::Flag,
            Some(ValueSource::EnvVariable) => OptionSource::Environment,
            _ if file.gives(id) => OptionSource::File,
            _ => OptionSource::Default,
        };
        let sources: BTreeMap<String, OptionSource> =
            matches.ids().map(|id| (id.to_string(), source(id.as_str()))).collect();
        let mut options = Options::from_arg_matches(matches)?;
        if sources.get("credentials") == Some(&OptionSource::Environment) {
            options.credentials = options.credentials.map(CredentialsSource::from_environment);
        }
        let triggers = file.triggers;
        let mut given = Given { options, triggers, unknown_variables, local: None, sources };
        if command == "local" {
            given.local = Some(LocalFlags::from_arg_matches(matches)?.apply(&mut given));
        }
        Ok(given)
    }

    pub(super) fn decide(&mut self, id: &str, source: OptionSource) {
        self.sources.insert(id.to_owned(), source);
    }

    /// The source of the option with this id, which is its flag with underscores.
    pub fn source(&self, id: &str) -> OptionSource {
        self.sources.get(id).copied().unwrap_or(OptionSource::Default)
    }
}

fn unicode_name((name, _): (OsString, OsString)) -> Option<String> {
    name.into_string().ok()
}
