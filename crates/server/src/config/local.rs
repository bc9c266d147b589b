//! `zenobe local`: the flags of DynamoDB Local, and what they mean here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::given::{Given, OptionSource};
use super::values::trimmed;
use crate::http::allowed_hosts_and_origins::CorsOrigin;

/// The data goes below DynamoDB Local's directory, which may hold that program's own files.
const DATA_DIRECTORY: &str = "zenobe-data";
/// The region that DynamoDB Local puts into ARNs.
const REGION: &str = "ddblocal";
/// How long DynamoDB Local 3.3.1 holds each status of an index, as measured.
const STATUS_HOLD: Duration = Duration::from_secs(15);

/// Every flag has DynamoDB Local's spelling; [`translate`] adds the second dash. `-port` is the
/// server's own option.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "DynamoDB Local")]
pub struct LocalFlags {
    /// Keep everything in memory
    #[arg(long = "inMemory", conflicts_with = "db_path")]
    in_memory: bool,
    /// Keep the data in zenobe-data below this directory
    #[arg(long = "dbPath", value_name = "PATH")]
    db_path: Option<PathBuf>,
    /// Share tables between all access keys and regions
    #[arg(long = "sharedDb")]
    shared_db: bool,
    /// Origins whose web pages may call the server, separated by commas, or * for any
    #[arg(
        long = "cors",
        value_delimiter = ',',
        value_parser = trimmed::<CorsOrigin>,
        value_name = "ORIGINS"
    )]
    cors: Vec<CorsOrigin>,
    /// Hold each status of a new or deleted index for 15 seconds
    #[arg(long = "delayTransientStatuses")]
    delay_transient_statuses: bool,
    /// Accepted, without effect: the store needs no optimising
    #[arg(long = "optimizeDbBeforeStartup", requires = "db_path")]
    optimize_db_before_startup: bool,
    /// Accepted, without effect: there is no telemetry
    #[arg(long = "disableTelemetry")]
    disable_telemetry: bool,
}

/// Settings of `zenobe local` that no option expresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalMode {
    /// How long an index keeps each status.
    pub index_status_delay: Duration,
}

impl LocalFlags {
    /// Changes the given options as the flags require. The server's own options win over flags.
    pub(super) fn apply(self, given: &mut Given) -> LocalMode {
        if self.in_memory {
            given.options.memory = true;
            given.decide("memory", OptionSource::Flag);
        }
        if let Some(path) = self.db_path {
            given.options.data = path.join(DATA_DIRECTORY);
            given.decide("data", OptionSource::Flag);
        }
        if given.source("namespaces_from_credentials") == OptionSource::Default {
            given.options.namespaces_from_credentials = !self.shared_db;
        }
        if given.source("region") == OptionSource::Default {
            given.options.region = REGION.to_owned();
        }
        given.options.cors_origin.extend(self.cors);
        let index_status_delay = match self.delay_transient_statuses {
            true => STATUS_HOLD,
            false => Duration::ZERO,
        };
        LocalMode { index_status_delay }
    }
}

/// The flags that a command line for DynamoDB Local may start with.
const FLAGS: [&str; 9] = [
    "inMemory",
    "dbPath",
    "sharedDb",
    "cors",
    "delayTransientStatuses",
    "optimizeDbBeforeStartup",
    "disableTelemetry",
    "port",
    "help",
];

/// Turns a command line for DynamoDB Local into one for `zenobe local`. It may be that of the Java
/// program, so that a compose file only has to change its image: `-Djava.library.path=… -jar
/// DynamoDBLocal.jar -sharedDb`.
pub fn translate(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let first = arguments.get(1).and_then(|argument| argument.to_str()).unwrap_or_default();
    let is_javas = first == "-jar" || is_of_the_virtual_machine(first) || is_flag(first);
    if first != "local" && !is_javas {
        return arguments;
    }
    let rest = arguments.split_off(if is_javas { 1 } else { 2 });
    arguments.truncate(1);
    let mut rest = rest.into_iter();
    let mut translated = vec![OsString::from("local")];
    while let Some(argument) = rest.next() {
        match argument.to_str() {
            Some("-jar") => drop(rest.next()),
            Some("-version") => {
                translated = vec![OsString::from("--version")];
                break;
            }
            Some(text) if is_of_the_virtual_machine(text) => {}
            Some(text) if has_one_dash(text) => translated.push(format!("-{text}").into()),
            _ => translated.push(argument),
        }
    }
    arguments.extend(translated);
    arguments
}

fn is_of_the_virtual_machine(argument: &str) -> bool {
    argument.starts_with("-D") || argument.starts_with("-X")
}

fn is_flag(argument: &str) -> bool {
    let name = argument.strip_prefix('-').unwrap_or_default();
    FLAGS.contains(&name.split('=').next().unwrap_or(name))
}

/// True for unknown flags as well, so that they get a suggestion.
fn has_one_dash(argument: &str) -> bool {
    let name = argument.strip_prefix('-').unwrap_or_default();
    name.len() > 1 && name.starts_with(|first: char| first.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> String {
        let arguments = translate(line.split(' ').map(OsString::from).collect());
        arguments.join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn command_lines_of_dynamodb_local_are_understood() {
        let check = |line: &str, expected: &str| assert_eq!(translated(line), expected, "{line}");
        check("zenobe local -inMemory -port 8001", "zenobe local --inMemory --port 8001");
        check(
            "zenobe -jar DynamoDBLocal.jar -sharedDb -dbPath ./data",
            "zenobe local --sharedDb --dbPath ./data",
        );
        check(
            "zenobe -Djava.library.path=./DynamoDBLocal_lib -Xmx1g -jar DynamoDBLocal.jar -inMemory",
            "zenobe local --inMemory",
        );
        check("zenobe -inMemory -cors *", "zenobe local --inMemory --cors *");
        check("zenobe -jar DynamoDBLocal.jar -version", "zenobe --version");
        check("zenobe local --log debug -help", "zenobe local --log debug --help");
    }

    #[test]
    fn other_command_lines_stay_as_they_are() {
        for line in ["zenobe", "zenobe serve --memory", "zenobe --version", "zenobe bench -c 8"] {
            assert_eq!(translated(line), line);
        }
    }
}
