//! `ZENOBE_…` variables: which ones exist, and which ones nobody reads.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;

use clap::{Arg, Command};

use super::suggestion::{did_you_mean, suggest};

const PREFIX: &str = "ZENOBE_";

/// Variables of the project's own tests and tools, which servers inherit.
const TOOLS: [&str; 6] = ["BINARY", "BLESS", "COMMIT", "SEED", "STEPS", "TEST"];

/// A variable that looks like an option but is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownVariable {
    name: String,
    suggestion: Option<String>,
}

impl fmt::Display for UnknownVariable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hint = did_you_mean(self.suggestion.as_deref());
        write!(out, "the environment variable {} sets no option{hint}", self.name)
    }
}

/// Prepares a command and its subcommands for the environment. An empty variable counts as unset,
/// because compose files and unit files leave them empty. Help texts don't show values, which may
/// be secret.
pub fn heed(command: Command) -> Command {
    let heed_argument = |argument: Arg| match argument.get_env() {
        Some(name) if std::env::var_os(name).is_some_and(|value| value.is_empty()) => {
            argument.env(None::<&'static str>)
        }
        _ => argument.hide_env_values(true),
    };
    command.mut_args(heed_argument).mut_subcommands(heed)
}

/// The variables in `names` that have the prefix of options but that `command` doesn't read.
pub fn unknown_variables(
    command: &Command,
    names: impl IntoIterator<Item = String>,
) -> Vec<UnknownVariable> {
    let mut known = BTreeSet::new();
    collect_variables(command, &mut known);
    let suffixes: Vec<&str> = known.iter().filter_map(|name| name.strip_prefix(PREFIX)).collect();
    let is_unknown = |name: &String| {
        name.strip_prefix(PREFIX).is_some_and(|suffix| {
            !known.contains(name) && !is_of_tools(suffix) && !is_of_containers(suffix)
        })
    };
    let describe = |name: String| {
        // The common prefix would make any two names similar.
        let suggestion = suggest(&name[PREFIX.len()..], suffixes.iter().copied());
        let suggestion = suggestion.map(|suffix| format!("{PREFIX}{suffix}"));
        UnknownVariable { name, suggestion }
    };
    names.into_iter().filter(is_unknown).map(describe).collect()
}

fn collect_variables(command: &Command, names: &mut BTreeSet<String>) {
    let variables = command.get_arguments().filter_map(Arg::get_env).filter_map(OsStr::to_str);
    names.extend(variables.map(str::to_owned));
    command.get_subcommands().for_each(|below| collect_variables(below, names));
}

fn is_of_tools(suffix: &str) -> bool {
    TOOLS.iter().any(|tool| suffix == *tool || suffix.starts_with(&format!("{tool}_")))
}

/// Variables that Kubernetes and Docker set in containers that see a service named zenobe.
fn is_of_containers(suffix: &str) -> bool {
    suffix == "PORT" || suffix.starts_with("PORT_") || suffix.starts_with("SERVICE_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(names: &[&str]) -> Vec<String> {
        let names = names.iter().map(|name| (*name).to_owned());
        let unknown = unknown_variables(&crate::cli::command(), names);
        unknown.iter().map(UnknownVariable::to_string).collect()
    }

    #[test]
    fn unknown_variables_are_named_with_a_suggestion() {
        assert_eq!(
            warnings(&["ZENOBE_MEMROY", "PATH", "ZENOBE_COLOUR"]),
            [
                "the environment variable ZENOBE_MEMROY sets no option; did you mean `ZENOBE_MEMORY`?",
                "the environment variable ZENOBE_COLOUR sets no option",
            ]
        );
    }

    #[test]
    fn known_variables_and_those_of_others_pass() {
        let none: [&str; 0] = [];
        assert_eq!(warnings(&["ZENOBE_MEMORY", "ZENOBE_CONFIG", "ZENOBE_ENDPOINT"]), none);
        assert_eq!(warnings(&["ZENOBE_SEED", "ZENOBE_BINARY"]), none);
        assert_eq!(warnings(&["ZENOBE_PORT", "ZENOBE_PORT_80_TCP", "ZENOBE_SERVICE_HOST"]), none);
    }
}
