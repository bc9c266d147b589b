//! `zenobe export`: the items of a table of any DynamoDB endpoint, as files for analysis.
//!
//! Parquet and CSV need to know all values of a column before its first one is written. So the items are read once, into files on
//! the disk, and written from there.

mod destination;
mod entity;
mod part;
mod scan;
mod spool;

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use zenobe_load::LoadError;
use zenobe_transfer::objects::{LocationError, ObjectError, ObjectLocation};
use zenobe_transfer::parquet::TooManyColumns;

use self::destination::Destination;
use self::entity::Entities;
use self::part::Part;
use self::spool::{Spool, SpooledItems};
use super::live_line::{LiveLine, bar};
use super::transfer_arguments::{TransferArguments, transfer_runtime};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zenobe export Orders --to ./lake
  zenobe export Orders --to s3://lake/raw --s3-endpoint aws --as-of 2026-11-16T08:00:00Z
  zenobe export Orders --to ./lake --entity type
  zenobe export Orders --to ./files --format dynamodb-json

Files are named table=Orders/entity=ORDER/part-00000.parquet, as DuckDB, pyarrow and Spark expect. The entity of an item is the value of \
the attribute that --entity names; else what stands before the first # in its sort key or, if there is none, in its partition key. \
Without either it has none, and lies under entity=__HIVE_DEFAULT_PARTITION__, unless no item has one.

A file appears under its name when it is whole, and _SUCCESS when all of them are. After an interruption, the same command \
begins again.")]
pub struct ExportArguments {
    /// Table to export
    table: String,
    /// Where to write: a directory, file:///directory or s3://bucket/prefix
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// Format of the files: parquet, csv, dynamodb-json or ion
    #[arg(long, default_value = "parquet", value_name = "FORMAT")]
    format: ExportFormat,
    /// Export the table as it was at this time (only from Zenobe, with point-in-time recovery)
    #[arg(long, value_name = "TIME")]
    as_of: Option<String>,
    /// Attribute whose value is the entity of an item [default: the prefix of its key before a #]
    #[arg(long, value_name = "ATTRIBUTE")]
    entity: Option<String>,
    /// Write all items together, whatever their entities
    #[arg(long, conflicts_with = "entity")]
    no_entities: bool,
    /// Replace an earlier export of the table at the same place
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    transfer: TransferArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExportFormat {
    Parquet,
    Csv,
    DynamoDbJson,
    Ion,
}

impl FromStr for ExportFormat {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<ExportFormat, &'static str> {
        match name.to_ascii_lowercase().as_str() {
            "parquet" => Ok(ExportFormat::Parquet),
            "csv" => Ok(ExportFormat::Csv),
            "dynamodb-json" | "dynamodb_json" => Ok(ExportFormat::DynamoDbJson),
            "ion" => Ok(ExportFormat::Ion),
            _ => Err("it must be parquet, csv, dynamodb-json or ion"),
        }
    }
}

impl ExportFormat {
    fn extension(self) -> &'static str {
        match self {
            ExportFormat::Parquet => "parquet",
            ExportFormat::Csv => "csv.gz",
            ExportFormat::DynamoDbJson => "json.gz",
            ExportFormat::Ion => "ion.gz",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
    #[error("--to: {0}")]
    Location(#[from] LocationError),
    #[error("{0}")]
    Objects(#[from] ObjectError),
    #[error("{0}")]
    Load(#[from] LoadError),
    #[error("{operation} failed: {message}")]
    Refused { operation: &'static str, message: String },
    #[error("the table {0} does not exist")]
    TableMissing(String),
    #[error("--as-of: the server at {0} can't read the past; leave it out, or export from Zenobe")]
    NoPast(String),
    #[error("the answer of the server can't be read: {0}")]
    Answer(String),
    #[error(
        "there are more than {0} entities; name an attribute with fewer values with --entity, or write all items together \
         with --no-entities"
    )]
    TooManyEntities(usize),
    #[error(
        "{error}: that is more columns than readers can handle; use --format dynamodb-json{}",
        if entity.is_empty() { String::new() } else { format!(" (the items of {entity})") }
    )]
    Columns { entity: String, error: TooManyColumns },
    #[error(
        "{0} has an export of the table already; choose another place, or replace it with --overwrite"
    )]
    Exists(String),
    #[error("{0} has files that no export has written, such as {1}; choose another place")]
    Foreign(String, String),
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: std::io::Error },
    #[error("interrupted; run the same command to begin again")]
    Interrupted,
}

pub fn run(arguments: &ExportArguments) -> Result<(), ExportError> {
    let runtime = transfer_runtime().map_err(ExportError::Runtime)?;
    runtime.block_on(async {
        tokio::select! {
            // The files on the disk go with what is dropped here.
            outcome = export(arguments) => outcome,
            _ = tokio::signal::ctrl_c() => Err(ExportError::Interrupted),
        }
    })
}

async fn export(arguments: &ExportArguments) -> Result<(), ExportError> {
    let target = arguments.transfer.target()?;
    let location: ObjectLocation = arguments.to.parse()?;
    let (table, format) = (arguments.table.as_str(), arguments.format);
    let described = scan::describe(&target, table).await?;
    let target = match &arguments.as_of {
        None => target,
        Some(as_of) => scan::with_past(target, table, as_of).await?,
    };
    let s3_endpoint = &arguments.transfer.s3_endpoint;
    let mut destination = Destination::open(&location, s3_endpoint, table, format)?;
    let earlier = destination.earlier(arguments.overwrite).await?;
    let mut spool = Spool::create(destination.spool_directory())?;
    let entities = entities(arguments, &described.keys);
    let mut line = LiveLine::patient(arguments.transfer.quiet);
    let mut pages = scan::start(&target, table);
    while let Some(page) = pages.recv().await {
        for item in page? {
            spool.add(entities.of(item.as_item()), item.as_item())?;
        }
        let items = spool.items();
        line.show(|| format!("{}  {items} items read", bar(items, described.items)));
    }
    let spooled = spool.finish()?;
    let total: u64 = spooled.iter().map(|of| of.items).sum();
    destination.begin(&earlier).await?;
    let mut written = 0;
    for of in &spooled {
        write(of, &described.keys, format, &mut destination, |items| {
            written += items;
            line.show(|| format!("{}  {written} items written", bar(written, total)));
        })
        .await?;
    }
    destination.finish(&earlier, total).await?;
    line.end();
    report(&destination, &spooled, total);
    Ok(())
}

/// Only columns gain from entities.
fn entities(arguments: &ExportArguments, keys: &[String]) -> Entities {
    let has_columns = matches!(arguments.format, ExportFormat::Parquet | ExportFormat::Csv);
    match &arguments.entity {
        Some(attribute) => Entities::Attribute(attribute.clone()),
        None if arguments.no_entities || !has_columns => Entities::None,
        None => Entities::KeyPrefix(keys.to_vec()),
    }
}

/// Writes the items of an entity, part after part.
async fn write(
    of: &SpooledItems,
    keys: &[String],
    format: ExportFormat,
    destination: &mut Destination,
    mut advance: impl FnMut(u64),
) -> Result<(), ExportError> {
    let columns = match &of.columns {
        Ok(columns) => columns.types(keys),
        Err(_) if !matches!(format, ExportFormat::Parquet | ExportFormat::Csv) => Vec::new(),
        Err(error) => {
            let (entity, error) = (of.entity.clone().unwrap_or_default(), error.clone());
            return Err(ExportError::Columns { entity, error });
        }
    };
    let mut items = of.open()?;
    let mut part = Part::new(format, &columns);
    let mut count = 0;
    while let Some(item) = items.next_item()? {
        part.add(item.as_item());
        count += 1;
        if part.is_full() {
            let full = std::mem::replace(&mut part, Part::new(format, &columns));
            destination.put(of.entity.as_deref(), full.finish()).await?;
            advance(std::mem::take(&mut count));
        }
    }
    if count > 0 {
        destination.put(of.entity.as_deref(), part.finish()).await?;
        advance(count);
    }
    Ok(())
}

fn report(destination: &Destination, spooled: &[SpooledItems], total: u64) {
    let entities = spooled.iter().filter(|of| of.entity.is_some()).count() as u64;
    let of_entities = match entities {
        0 => String::new(),
        _ => format!(" of {}", counted(entities, "entity", "entities")),
    };
    let items = counted(total, "item", "items");
    let files = counted(destination.files() as u64, "file", "files");
    println!("{items}{of_entities} in {files}: {}", destination.name());
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
