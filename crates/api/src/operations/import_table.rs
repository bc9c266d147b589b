//! ImportTable: starts a job that creates a table from the objects of a bucket.

use std::sync::Arc;

use zenobe_engine::command::TableName;
use zenobe_engine::error::Error;
use zenobe_engine::jobs::{JobRow, NewJob, Started};
use zenobe_transfer::csv::DELIMITERS;
use zenobe_transfer::{Compression, Format};

use super::create_table::{TableCreationParameters, creation_command};
use crate::constraints::{TableNameRule, Violations, printed_list};
use crate::error::ApiError;
use crate::imports::{
    INPUT_COMPRESSION, INPUT_FORMAT, ImportParameters, ImportProgress, InputFormatOptions, KIND,
    write_import,
};
use crate::json::Writer;
use crate::json::decode::{raw_member, request, shape};
use crate::messages::constraint::Constraint;
use crate::messages::{table, transfer};
use crate::{Context, Reply};

/// How long a client's token stands for its import.
pub(crate) const TOKEN_LIFETIME_MS: u64 = 8 * 60 * 60 * 1_000;
const HEADER_COLUMNS_MAX: usize = 255;
const HEADER_LENGTH_MAX: usize = 65_536;
const HEADER_PATTERN: &str = r"[\x20-\x21\x23-\x2B\x2D-\x7E]*";
pub(crate) const BUCKET_PATTERN: &str = r"^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$";
pub(crate) const OWNER_PATTERN: &str = "[0-9]{12}";
pub(crate) const TOKEN_PATTERN: &str = r"^[^\$]+$";

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: ImportTableInput = request(body)?;
    let constrained = constrain(&input)?;
    check_options(&input, constrained.format)?;
    let creation = input.table_creation_parameters.clone().unwrap_or_default();
    let name = context.table_name(creation.table_name.as_deref(), TableNameRule::Settings)?;
    // Everything that CreateTable would reject is rejected now, not by the job.
    creation_command(name.clone(), creation)?;
    if context.options.object_store.is_none() {
        return Err(transfer::no_object_store("ImportTable"));
    }
    check_free(context, &name).await?;
    let parameters = parameters(context, &input, constrained, body);
    let row = start(context, &name, &parameters).await?;
    let mut writer = Writer::new();
    writer.object(|writer| write_import(writer.name("ImportTableDescription"), &row));
    Ok(Reply(writer.finish()))
}

shape! {
    struct ImportTableInput {
        "ClientToken" => client_token: String,
        "S3BucketSource" => s3_bucket_source: S3BucketSource,
        "InputFormat" => input_format: String,
        "InputFormatOptions" => input_format_options: InputFormatOptions,
        "InputCompressionType" => input_compression_type: String,
        "TableCreationParameters" => table_creation_parameters: TableCreationParameters,
    }

    struct S3BucketSource {
        "S3BucketOwner" => s3_bucket_owner: String,
        "S3Bucket" => s3_bucket: String,
        "S3KeyPrefix" => s3_key_prefix: String,
    }
}

/// The members that the constraints have narrowed.
#[derive(Clone, Copy)]
struct Constrained {
    format: Format,
    compression: Compression,
}

fn constrain(input: &ImportTableInput) -> Result<Constrained, ApiError> {
    let mut violations = Violations::new();
    if let Some(token) =
        input.client_token.as_deref().filter(|it| it.is_empty() || it.contains('$'))
    {
        violations.add(Some(token), "clientToken", Constraint::Pattern(TOKEN_PATTERN));
    }
    match &input.s3_bucket_source {
        None => violations.add(None, "s3BucketSource", Constraint::NotNull),
        Some(source) => constrain_bucket(
            source.s3_bucket.as_deref(),
            source.s3_key_prefix.as_deref(),
            source.s3_bucket_owner.as_deref(),
            "s3BucketSource",
            &mut violations,
        ),
    }
    let format = input.input_format.as_deref();
    let format = violations.required_enumeration(format, "inputFormat", &INPUT_FORMAT);
    let options = input.input_format_options.as_ref().and_then(|options| options.csv.as_ref());
    if let Some(delimiter) = options.and_then(|csv| csv.delimiter.as_deref())
        && !DELIMITERS.contains(&delimiter)
    {
        let path = "inputFormatOptions.csv.delimiter";
        violations.add(Some(delimiter), path, Constraint::Pattern("[,;:|\\t ]"));
    }
    if let Some(header) = options.and_then(|csv| csv.header_list.as_ref()) {
        let path = "inputFormatOptions.csv.headerList";
        let print = || printed_list(header, String::clone);
        violations.count(header.len(), path, 1, HEADER_COLUMNS_MAX, print);
        if !header.iter().all(|name| is_column_name(name)) {
            let (min, max, pattern) = (1, HEADER_LENGTH_MAX, HEADER_PATTERN);
            violations.add(Some(&print()), path, Constraint::MemberPattern { min, max, pattern });
        }
    }
    let compression = input.input_compression_type.as_deref();
    let compression =
        violations.enumeration(compression, "inputCompressionType", &INPUT_COMPRESSION);
    if input.table_creation_parameters.is_none() {
        violations.add(None, "tableCreationParameters", Constraint::NotNull);
    }
    violations.finish()?;
    Ok(Constrained {
        format: format.unwrap_or(Format::DynamoDbJson),
        compression: compression.unwrap_or(Compression::None),
    })
}

/// Checks how a request names objects. The pattern leaves no bucket that could lead out of a
/// directory of buckets.
pub(crate) fn constrain_bucket(
    bucket: Option<&str>,
    prefix: Option<&str>,
    owner: Option<&str>,
    path: &str,
    violations: &mut Violations,
) {
    let pattern = |member: &str, value: &str, pattern: &str, violations: &mut Violations| {
        violations.add(Some(value), &format!("{path}.{member}"), Constraint::Pattern(pattern));
    };
    if let Some(owner) = owner.filter(|owner| !is_account(owner)) {
        pattern("s3BucketOwner", owner, OWNER_PATTERN, violations);
    }
    match bucket {
        None => violations.add(None, &format!("{path}.s3Bucket"), Constraint::NotNull),
        Some(bucket) => {
            violations.length(bucket, &format!("{path}.s3Bucket"), 0, 255);
            if !is_bucket_name(bucket) {
                pattern("s3Bucket", bucket, BUCKET_PATTERN, violations);
            }
        }
    }
    if let Some(prefix) = prefix {
        violations.length(prefix, &format!("{path}.s3KeyPrefix"), 0, 1_024);
    }
}

pub(crate) fn is_account(owner: &str) -> bool {
    owner.len() == 12 && owner.bytes().all(|byte| byte.is_ascii_digit())
}

pub(crate) fn is_bucket_name(bucket: &str) -> bool {
    let bytes = bucket.as_bytes();
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() >= 2
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(byte))
}

fn is_column_name(name: &str) -> bool {
    let is_allowed = |byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b',');
    (1..=HEADER_LENGTH_MAX).contains(&name.len()) && name.bytes().all(is_allowed)
}

fn check_options(input: &ImportTableInput, format: Format) -> Result<(), ApiError> {
    let has_csv = input.input_format_options.as_ref().is_some_and(|options| options.csv.is_some());
    match has_csv && format != Format::Csv {
        true => Err(transfer::unsupported_options(format.name())),
        false => Ok(()),
    }
}

/// A table that is being filled is not an obstacle yet: of imports that run side by side, the first to
/// create the table wins.
async fn check_free(context: &Context<'_>, name: &TableName) -> Result<(), ApiError> {
    match context.engine.current_table(name).await {
        Ok(_) => Err(table::table_exists(&name.name)),
        Err(Error::TableNotFound { .. }) => Ok(()),
        Err(error) => Err(context.table(&name.name, error)),
    }
}

fn parameters(
    context: &Context<'_>,
    input: &ImportTableInput,
    constrained: Constrained,
    body: &[u8],
) -> ImportParameters {
    let source = input.s3_bucket_source.clone().unwrap_or_default();
    let member = |name: &str| raw_member(body, name).map(str::to_owned);
    ImportParameters {
        bucket: source.s3_bucket.unwrap_or_default(),
        prefix: source.s3_key_prefix,
        owner: source.s3_bucket_owner.unwrap_or_else(|| context.namespace.account.clone()),
        format: constrained.format,
        compression: constrained.compression,
        options: input.input_format_options.as_ref().and_then(|_| member("InputFormatOptions")),
        table: member("TableCreationParameters").unwrap_or_default(),
        token: input.client_token.clone().unwrap_or_else(|| context.engine.new_uuid()),
    }
}

/// Starts the job, or finds the running one of the same token.
async fn start(
    context: &Context<'_>,
    name: &TableName,
    parameters: &ImportParameters,
) -> Result<JobRow, ApiError> {
    let mut token = parameters.token.clone();
    loop {
        let new = NewJob {
            namespace: (*Arc::clone(&name.namespace)).clone(),
            kind: KIND,
            table: Some(name.name.clone()),
            token: Some(token.clone()),
            token_lifetime_ms: TOKEN_LIFETIME_MS,
            parameters: parameters.encode(),
            progress: ImportProgress::default().encode(),
        };
        let started = context.engine.start_job(new).await;
        match started.map_err(|error| context.table(&name.name, error))? {
            Started::New(row) => return Ok(row),
            // A token means nothing once its import has ended. The next import with it goes by a
            // token that no client can send.
            Started::Existing(row) if row.status.is_final() => {
                token = format!("{token}${}", row.id);
            }
            Started::Existing(row) if row.table.as_ref() == Some(&name.name) => return Ok(row),
            Started::Existing(_) => return Err(transfer::import_conflict()),
        }
    }
}
