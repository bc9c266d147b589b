//! `zenobe sql`: the shell of `zenobe_shell` on the command line.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};
use zenobe_load::{LoadError, Target};
use zenobe_shell::{Format, Input, Options, Profile, ProfileError, ShellError, run as run_shell};

/// Takes the place of an endpoint: DynamoDB itself, in the given region.
const AWS: &str = "aws";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zenobe sql                                           a shell; \\? in it lists its commands
  zenobe sql -c \"SELECT * FROM Music WHERE Artist = 'No One You Know'\"
  zenobe sql -f changes.sql --keep-going
  echo 'SELECT * FROM Music' | zenobe sql --format csv --max-rows 0 > music.csv
  zenobe sql --as-of 2026-11-16T08:00:00Z -c \"SELECT * FROM Music\"
  zenobe sql --endpoint aws --region eu-west-1 --profile work

Before a statement reads a whole table or index, the shell warns and shows the size and the cost. After each statement it shows the \
units consumed. Results go to standard output, the rest to standard error, unless the format is `table`. The exit code is \
1 if a statement failed.")]
pub struct SqlArguments {
    /// Address of the server, or `aws` [default: AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL or http://127.0.0.1:8000]
    #[arg(long, visible_alias = "endpoint-url", env = "ZENOBE_ENDPOINT", value_name = "URL")]
    endpoint: Option<String>,
    /// Region to sign requests for [default: AWS_DEFAULT_REGION, the profile's or us-east-1]; access keys come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN
    #[arg(long, env = "AWS_REGION", value_name = "REGION")]
    region: Option<String>,
    /// AWS CLI profile to take access keys from instead
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Run these statements and exit
    #[arg(long = "command", short, value_name = "STATEMENTS", action = ArgAction::Append)]
    commands: Vec<String>,
    /// Run the statements in a file and exit; - is standard input
    #[arg(long, short, value_name = "FILE", conflicts_with = "commands")]
    file: Option<PathBuf>,
    /// Output format: columns, JSON objects without or with DynamoDB's types, or RFC 4180 CSV
    #[arg(long, default_value = "table", value_parser = format_parser(), value_name = "FORMAT")]
    format: Format,
    /// Print each row as a list of its attributes
    #[arg(long, short = 'x')]
    expanded: bool,
    /// Print how long each statement takes
    #[arg(long)]
    timing: bool,
    /// Read tables as they were at this time, such as 2026-11-16T08:00:00Z; they must have point-in-time recovery
    #[arg(long, value_name = "TIME")]
    as_of: Option<String>,
    /// Use strongly consistent reads, at twice the units
    #[arg(long)]
    consistent_read: bool,
    /// Maximum rows per statement where the shell can't ask for more; 0 means all
    #[arg(long, default_value_t = 10_000, value_name = "NUMBER")]
    max_rows: usize,
    /// Print no warnings and no consumed units
    #[arg(long, short)]
    quiet: bool,
    /// Continue with the next statement after a failure
    #[arg(long, short)]
    keep_going: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    #[error("{0}")]
    Shell(#[from] ShellError),
    #[error("{0}")]
    Target(#[from] LoadError),
    #[error("--profile: {0}")]
    Profile(#[from] ProfileError),
}

pub fn run(arguments: SqlArguments) -> Result<(), SqlError> {
    let target = arguments.target()?;
    let input = match (arguments.commands, arguments.file) {
        (commands, None) if commands.is_empty() => Input::Standard,
        (commands, None) => Input::Commands(commands),
        (_, Some(path)) if path.as_os_str() == "-" => Input::Standard,
        (_, Some(path)) => Input::File(path),
    };
    Ok(run_shell(Options {
        target,
        input,
        format: arguments.format,
        expanded: arguments.expanded,
        timing: arguments.timing,
        consistent_read: arguments.consistent_read,
        rows_max: Some(arguments.max_rows).filter(|rows| *rows > 0),
        quiet: arguments.quiet,
        keep_going: arguments.keep_going,
        program: format!("zenobe {}", env!("CARGO_PKG_VERSION")),
    })?)
}

impl SqlArguments {
    fn target(&self) -> Result<Target, SqlError> {
        let profile = self.profile.as_deref().map(Profile::load).transpose()?;
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let profile_region = profile.as_ref().and_then(|profile| profile.region.clone());
        let region = self.region.clone().or_else(|| variable("AWS_DEFAULT_REGION"));
        let region = region.or(profile_region).unwrap_or_else(|| "us-east-1".to_owned());
        let endpoint = self.endpoint.clone().or_else(|| variable("AWS_ENDPOINT_URL_DYNAMODB"));
        let endpoint = endpoint.or_else(|| variable("AWS_ENDPOINT_URL"));
        let endpoint = match endpoint.as_deref() {
            Some(AWS) => format!("https://dynamodb.{region}.amazonaws.com"),
            other => other.unwrap_or("http://127.0.0.1:8000").to_owned(),
        };
        let target = match profile {
            None => Target::from_environment(&endpoint, &region)?,
            Some(profile) => Target::with_credential(&endpoint, &region, Some(profile.credential))?,
        };
        Ok(match &self.as_of {
            None => target,
            Some(as_of) => target.with_as_of(as_of)?,
        })
    }
}

fn format_parser() -> impl TypedValueParser<Value = Format> {
    let parser = PossibleValuesParser::new(Format::ALL.map(Format::name));
    parser.map(|name| Format::from_name(&name).unwrap_or(Format::Table))
}
