//! `zenobe import`: files of items, from disk or an object store, into the tables of any DynamoDB
//! endpoint.
//!
//! Unlike ImportTable it runs on the client's side. It writes to existing tables too, shows its
//! progress, can be interrupted and continued, and can replace values on the way.

mod dynamodb_local;
mod model;
mod progress;
mod report;
mod send;
mod sources;
mod state;
mod table;

use std::path::PathBuf;

use clap::Args;
use zenobe_load::{LoadError, Target};
use zenobe_transfer::anonymise::{AnonymiseRuleError, AnonymiseRules};
use zenobe_transfer::objects::{LocationError, ObjectError, ObjectLocation};

use self::dynamodb_local::LocalDatabase;
use self::progress::ImportDisplay;
use self::report::Report;
use self::send::Sender;
use self::sources::{ImportSource, SourceFile};
use self::state::{ImportState, Purpose};
use super::transfer_arguments::{TransferArguments, transfer_runtime};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zenobe import ./AWSDynamoDB/01693685827463-2d8752fd --table Orders --keys pk:S,sk:N
  zenobe import s3://bucket/AWSDynamoDB/01693685827463-2d8752fd --table Orders --s3-endpoint aws
  zenobe import users.csv --table Users --anonymise email=fake:email --anonymise name=fake:name
  zenobe import items.jsonl.gz --table Items --dry-run --report report.json
  zenobe import model.json                       a model of NoSQL Workbench: its tables and their data
  zenobe import shared-local-instance.db         a database file of DynamoDB Local: the same

A source is an export of DynamoDB (the folder with manifest-summary.json, full or incremental), a file, a folder, or a prefix in an \
object store. Formats go by the names of files: .json, .jsonl, .ndjson, .ion, .csv, .tsv, each also with .gz or .zst. Lines of JSON \
may be DynamoDB's ({\"Item\":{…}}) or plain objects. Checksums of exports are verified before anything is written.

After an interruption, the same command continues where the import stopped. The exit code is 1 if \
records were rejected.")]
pub struct ImportArguments {
    /// What to import: a path, file:///path or s3://bucket/prefix
    source: String,
    /// Table to import into
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Create the table, if it is missing, with these keys: NAME:TYPE or NAME:TYPE,NAME:TYPE
    #[arg(long, value_name = "KEYS")]
    keys: Option<String>,
    /// Format of all files: dynamodb-json, ion, csv or json [default: by their names]
    #[arg(long, value_name = "FORMAT")]
    format: Option<sources::ImportFormat>,
    /// Character between the fields of CSV files [default: a comma, or a tab in .tsv files]
    #[arg(long, value_name = "CHARACTER")]
    delimiter: Option<char>,
    /// Names of the columns of CSV files, whose first line is then data
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    header: Option<Vec<String>>,
    /// Replace the values of an attribute: NAME=hash, NAME=mask, NAME=mask:4 or NAME=fake:email; may be repeated
    #[arg(long, value_name = "RULE", visible_alias = "anonymize")]
    anonymise: Vec<String>,
    /// Secret that replacements depend on: with the same one, the same value has the same replacement
    #[arg(long, env = "ZENOBE_ANONYMISE_KEY", value_name = "TEXT", hide_env_values = true)]
    anonymise_key: Option<String>,
    /// Read and check everything, but write nothing
    #[arg(long)]
    dry_run: bool,
    /// Write what was rejected, and why, to this file as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// File that remembers how far the import is [default: zenobe-import-TABLE.state]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    #[command(flatten)]
    transfer: TransferArguments,
}

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
    #[error("{0}")]
    Location(#[from] LocationError),
    #[error("there is nothing at {0}")]
    Missing(String),
    #[error("{0}")]
    Objects(#[from] ObjectError),
    #[error("--anonymise: {0}")]
    AnonymiseRules(#[from] AnonymiseRuleError),
    #[error("--anonymise needs --anonymise-key, so that replacements can't be guessed")]
    NoKey,
    #[error(
        "--table says which table to import into; only models of NoSQL Workbench and databases of DynamoDB Local name theirs"
    )]
    NoTable,
    #[error("the table {0} does not exist; --keys pk:S or --keys pk:S,sk:N creates it")]
    TableMissing(String),
    #[error("--keys: `{0}` is not NAME:TYPE or NAME:TYPE,NAME:TYPE with the types S, N and B")]
    Keys(String),
    #[error("{0}: no format goes by that name; give --format")]
    Format(String),
    #[error(
        "{0} is a Parquet file, whose columns no longer say which types the attributes had; export with --format dynamodb-json or ion to import again"
    )]
    Parquet(String),
    #[error(
        "{0} is a database file, such as DynamoDB Local's; download it if necessary, and give the path of the file itself"
    )]
    DatabaseFile(String),
    #[error("{file} can't be imported: {problem}")]
    DynamoDbLocal { file: String, problem: String },
    #[error("the export is damaged: {0}")]
    Export(String),
    #[error("{0} is not a model of NoSQL Workbench: {1}")]
    Model(String, String),
    #[error("{0}")]
    Load(#[from] LoadError),
    #[error("{operation} failed: {message}")]
    Refused { operation: &'static str, message: String },
    #[error("cannot read {file}: {error}")]
    Read { file: String, error: String },
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: std::io::Error },
    #[error(
        "{} is the state of an interrupted import with {what}; repeat that command to continue it, or delete the file to import everything",
        path.display()
    )]
    OtherState { path: PathBuf, what: &'static str },
    #[error(
        "{} is not the state of an import by this version; delete it to import everything, or name another file with --state",
        path.display()
    )]
    UnreadableState { path: PathBuf },
    #[error(
        "{file} has changed since it was imported, whole or in part; restore it to continue, or delete {} to import everything",
        path.display()
    )]
    Changed { file: String, path: PathBuf },
    #[error("{0} records were rejected")]
    Rejected(u64),
}

pub fn run(arguments: &ImportArguments) -> Result<(), ImportError> {
    let runtime = transfer_runtime().map_err(ImportError::Runtime)?;
    runtime.block_on(import(arguments))
}

async fn import(arguments: &ImportArguments) -> Result<(), ImportError> {
    let rules = rules(arguments)?;
    let target = arguments.transfer.target()?;
    let location: ObjectLocation = arguments.source.parse()?;
    if let ObjectLocation::Path(path) = &location
        && let Some(database) = LocalDatabase::open(path)?
    {
        return import_database(arguments, &target, &rules, &database).await;
    }
    let source = ImportSource::open(&location, &arguments.transfer.s3_endpoint).await?;
    if let Some(model) = source.model().await? {
        let mut report = Report::default();
        for table in model::tables(&arguments.source, &model)? {
            let (name, creation) = (&table.name, &table.creation);
            let sender = Sender::creating(&target, name, creation, arguments.dry_run).await?;
            send::send_model(&sender, &table, &rules, &mut report).await?;
        }
        return finish(arguments, &report, None);
    }
    let name = arguments.table.as_deref().ok_or(ImportError::NoTable)?;
    let files = source.files(arguments.format).await?;
    let keys = arguments.keys.as_deref().map(table::parse_keys).transpose()?;
    let sender = Sender::new(&target, name, keys.as_deref(), arguments.dry_run).await?;
    let (mut state, mut report) =
        state(arguments, &target, &rules, (name, sender.table_identity()))?;
    let size_bytes = files.iter().map(|file| file.object.size_bytes).sum();
    let mut progress = ImportDisplay::new(size_bytes, arguments.transfer.quiet);
    for file in &files {
        if state.is_done(&file.key, &file.version())? {
            progress.skip(file.object.size_bytes);
            continue;
        }
        let reading = reading(arguments, file, &sender);
        let mut context = send::Context { sender: &sender, rules: &rules, report: &mut report };
        send::send_file(&mut context, &source, file, reading, &mut state, &mut progress).await?;
    }
    progress.end();
    finish(arguments, &report, Some(&state))
}

/// Imports the tables of DynamoDB Local, or the one that is named.
async fn import_database(
    arguments: &ImportArguments,
    target: &Target,
    rules: &AnonymiseRules,
    database: &LocalDatabase,
) -> Result<(), ImportError> {
    let tables = database.tables(arguments.table.as_deref())?;
    let row_count = tables.iter().map(|table| table.row_count).sum();
    let mut progress = ImportDisplay::new(row_count, arguments.transfer.quiet);
    let named = arguments.table.as_deref().unwrap_or("database");
    // All tables are imported into one account, so one of them tells which.
    let first = match tables.first() {
        Some(table) => {
            Some(Sender::creating(target, &table.name, &table.creation, arguments.dry_run).await?)
        }
        None => None,
    };
    let identity = first.as_ref().map_or("", Sender::table_identity);
    let (mut state, mut report) = state(arguments, target, rules, (named, identity))?;
    let version = database.version()?;
    for table in tables {
        let (name, creation) = (&table.name, &table.creation);
        if state.is_done(name, &version)? {
            progress.skip(table.row_count);
            continue;
        }
        let sender = Sender::creating(target, name, creation, arguments.dry_run).await?;
        let mut context = send::Context { sender: &sender, rules, report: &mut report };
        let items = database.items(table)?;
        let table_version = (table, version.as_str());
        send::send_local_table(&mut context, table_version, items, &mut state, &mut progress)
            .await?;
        database.check_unchanged()?;
        if let Some(attribute) = &table.time_to_live
            && !arguments.dry_run
        {
            table::enable_time_to_live(target, name, attribute).await?;
        }
        state.complete(name, &version, &report)?;
    }
    progress.end();
    finish(arguments, &report, Some(&state))
}

/// How far an earlier import into the table has come, and what it has to report.
fn state(
    arguments: &ImportArguments,
    target: &Target,
    rules: &AnonymiseRules,
    (table, identity): (&str, &str),
) -> Result<(ImportState, Report), ImportError> {
    let default = || PathBuf::from(format!("zenobe-import-{table}.state"));
    let path = arguments.state.clone().unwrap_or_else(default);
    let path = (!arguments.dry_run).then_some(path);
    let ImportArguments { format, delimiter, header, .. } = arguments;
    let purpose = Purpose {
        source: arguments.source.clone(),
        endpoint: format!("{target} {}", target.region()),
        table: format!("{table} {identity}"),
        reading: format!("{format:?} {delimiter:?} {header:?}"),
        rules: rules.fingerprint(),
    };
    ImportState::open(path, purpose)
}

fn rules(arguments: &ImportArguments) -> Result<AnonymiseRules, ImportError> {
    if arguments.anonymise.is_empty() {
        return Ok(AnonymiseRules::default());
    }
    let key = arguments.anonymise_key.as_ref().ok_or(ImportError::NoKey)?;
    Ok(AnonymiseRules::parse(&arguments.anonymise, key.as_bytes())?)
}

fn reading(arguments: &ImportArguments, file: &SourceFile, sender: &Sender) -> send::Reading {
    let delimiter = arguments.delimiter.and_then(|delimiter| u8::try_from(delimiter).ok());
    send::Reading {
        delimiter: delimiter.unwrap_or(if file.is_tsv() { b'\t' } else { b',' }),
        header: arguments.header.clone(),
        types: sender.attribute_types(),
    }
}

/// Reports. Only then the state can go.
fn finish(
    arguments: &ImportArguments,
    report: &Report,
    state: Option<&ImportState>,
) -> Result<(), ImportError> {
    report.print(arguments.dry_run);
    if let Some(path) = &arguments.report {
        report.write(path)?;
    }
    if let Some(state) = state {
        state.remove();
    }
    match report.rejected {
        0 => Ok(()),
        rejected => Err(ImportError::Rejected(rejected)),
    }
}
