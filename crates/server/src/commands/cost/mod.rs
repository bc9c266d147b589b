//! `zenobe cost`: what the traffic of a server would cost on AWS.
//!
//! The server reports what it has recorded. Prices and arithmetic are in the client, so that anybody can
//! compare prices, regions and table classes without touching the server.

mod fetch;
mod json;
mod text;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use zenobe_monitoring::cost::estimate::{FreeTier, GroupBy};
use zenobe_monitoring::cost::prices::PriceError;
use zenobe_monitoring::cost::{Estimate, PriceFile, RegionPrices, StorageClass};

use self::fetch::Recorded;
use super::server_connection::{ConnectionArguments, ServerConnection};
use super::{CommandError, print_line, time_argument};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zenobe cost                          everything that the server has recorded
  zenobe cost --last 24h --by table    the last day, by table
  zenobe cost --table Orders --json    one table, for scripts

The server records the traffic of metered tables for --cost-retention-days, by the hour. What it has seen is \
extrapolated to a month of 730 hours. Prices are those of --region, from a file that comes with this version; prices change, so \
compare the file's date, and give your own with --prices. docs/cost.md describes the file.")]
pub struct CostArguments {
    /// Only this table
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,
    /// How to group the costs
    #[arg(long, default_value = "pattern", value_enum, value_name = "WHAT")]
    by: By,
    /// Count traffic since this time: 2026-11-16T08:00:00Z, or seconds since 1970. Rounded down to the hour
    #[arg(long, value_parser = time_ms, value_name = "TIME")]
    since: Option<u64>,
    /// Count traffic until this time. Rounded up to the hour
    #[arg(long, value_parser = time_ms, value_name = "TIME")]
    until: Option<u64>,
    /// Count only the last hours or days, such as 24h or 7d
    #[arg(long, value_parser = duration_ms, value_name = "TIME", conflicts_with = "since")]
    last: Option<u64>,
    /// File with prices to use instead of those that come with this version
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Region whose prices apply, if it is not the one of --region
    #[arg(long, value_name = "REGION")]
    prices_region: Option<String>,
    /// Table class to assume for all tables, instead of their own
    #[arg(long, value_enum, value_name = "CLASS")]
    storage_class: Option<Class>,
    /// Subtract what AWS's free tier gives to an account
    #[arg(long)]
    free_tier: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    Table,
    Index,
    Operation,
    Pattern,
}

impl By {
    fn group(self) -> GroupBy {
        match self {
            By::Table => GroupBy::Table,
            By::Index => GroupBy::Index,
            By::Operation => GroupBy::Operation,
            By::Pattern => GroupBy::Pattern,
        }
    }

    fn name(self) -> &'static str {
        match self {
            By::Table => "table",
            By::Index => "index",
            By::Operation => "operation",
            By::Pattern => "pattern",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Class {
    Standard,
    InfrequentAccess,
}

impl Class {
    fn storage_class(self) -> StorageClass {
        match self {
            Class::Standard => StorageClass::Standard,
            Class::InfrequentAccess => StorageClass::InfrequentAccess,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PricesError {
    #[error("cannot read the prices in {}: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    #[error("the prices in {} cannot be used: {error}", path.display())]
    Invalid { path: PathBuf, error: PriceError },
    #[error("{0}")]
    Region(PriceError),
}

/// Everything that a report shows.
struct Report {
    recorded: Recorded,
    estimate: Estimate,
    free_tier: Option<FreeTier>,
    by: By,
    region: String,
    prices_date: String,
}

pub async fn run(arguments: CostArguments) -> Result<(), CommandError> {
    let region = arguments.prices_region.as_ref().unwrap_or(&arguments.connection.region).clone();
    let (prices_date, prices) = prices(arguments.prices.as_ref(), &region)?;
    let connection = ServerConnection::new(&arguments.connection)?;
    let class = arguments.storage_class.map(Class::storage_class);
    let query = query(&arguments);
    let table = arguments.table.as_deref();
    let (recorded, tables) = fetch::fetch(&connection, &query, table, class).await?;
    if let Some(table) = table
        && tables.is_empty()
    {
        let message = format!("there is no table {table}, and none of that name had traffic");
        return Err(CommandError::Refused(message));
    }
    let estimate =
        Estimate::new(&prices, &recorded.observed_minutes, tables, recorded.stream_reads);
    let free_tier = arguments.free_tier.then(|| FreeTier::of(&estimate, &prices));
    let by = arguments.by;
    let report = Report { recorded, estimate, free_tier, by, region, prices_date };
    match arguments.json {
        true => print_line(&json::render(&report).to_string()),
        false => text::render(&report).iter().try_for_each(|line| print_line(line)),
    }
}

fn prices(path: Option<&PathBuf>, region: &str) -> Result<(String, RegionPrices), PricesError> {
    let file = match path {
        None => PriceFile::built_in(),
        Some(path) => {
            let read = std::fs::read_to_string(path);
            let text = read.map_err(|error| PricesError::Read { path: path.clone(), error })?;
            PriceFile::parse(&text)
                .map_err(|error| PricesError::Invalid { path: path.clone(), error })?
        }
    };
    let prices = *file.region(region).map_err(PricesError::Region)?;
    Ok((file.date, prices))
}

fn query(arguments: &CostArguments) -> String {
    let CostArguments { since, until, last, .. } = arguments;
    let given = [("since_ms", since), ("until_ms", until), ("last_ms", last)];
    let given = given.iter().filter_map(|(name, value)| value.map(|value| (name, value)));
    given.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

fn time_ms(text: &str) -> Result<u64, String> {
    time_argument(text).map(|time| time.at_ms())
}

fn duration_ms(text: &str) -> Result<u64, String> {
    const MINUTE_MS: u64 = 60 * 1_000;
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "m" => Some(MINUTE_MS),
        "h" => Some(60 * MINUTE_MS),
        "d" => Some(24 * 60 * MINUTE_MS),
        _ => None,
    };
    let number = number.parse::<u64>().ok().filter(|number| *number > 0);
    let ms = number.zip(unit_ms).and_then(|(number, unit_ms)| number.checked_mul(unit_ms));
    ms.ok_or_else(|| "expected a number of minutes, hours or days, such as 90m, 24h or 7d".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration_ms("90m"), Ok(5_400_000));
        assert_eq!(duration_ms("24h"), Ok(86_400_000));
        assert_eq!(duration_ms("7d"), Ok(604_800_000));
        for wrong in ["", "h", "0h", "24", "24x", "1.5h", "99999999999999999999d"] {
            assert!(duration_ms(wrong).is_err(), "{wrong}");
        }
        assert_eq!(time_ms("1970-01-01T01:00:00Z").unwrap() / 1_000, 3_600);
        assert!(time_ms("yesterday").is_err());
    }

    #[test]
    fn a_missing_region_is_told() {
        let error = prices(None, "eu-moon-1").unwrap_err().to_string();
        assert!(error.contains("known are us-east-1, us-east-2, us-west-2"), "{error}");
        let missing = PathBuf::from("/nowhere/prices.toml");
        let error = prices(Some(&missing), "us-east-1").unwrap_err().to_string();
        assert!(error.starts_with("cannot read the prices in /nowhere/prices.toml"), "{error}");
    }
}
