//! StartBulkPutItems, DescribeBulkOperation, CancelBulkOperation and ListBulkOperations.

use zenobe_engine::jobs::{JobRow, NewJob, Started};
use zenobe_engine::schema::IndexStatus;
use zenobe_transfer::{Compression, Format};

use super::import_table::{TOKEN_LIFETIME_MS, TOKEN_PATTERN, constrain_bucket};
use super::job_page::{JobPage, constrain_limit};
use super::stream_input::constrain_arn;
use crate::constraints::{Enumeration, TableNameRule, Violations};
use crate::error::ApiError;
use crate::imports::{
    BULK_FORMAT, BULK_KIND, BulkParameters, INPUT_COMPRESSION, ImportProgress, bulk_arn,
    write_bulk_head, write_bulk_operation,
};
use crate::json::Writer;
use crate::json::decode::{raw_member, request, shape};
use crate::messages::constraint::Constraint;
use crate::messages::transfer;
use crate::{Context, Reply};

const UNITS_MIN: i64 = 1_024;
/// How many jobs are looked at for one that still runs on the same table.
const RUNNING_LOOKED_AT_MAX: usize = 1_000;

static OUTPUT_TYPE: Enumeration<bool> =
    Enumeration(&[("ERROR", true), ("CONDITION_CHECK_FAILURE", false)]);
static PERFORMANCE_TIER: Enumeration<()> = Enumeration(&[("STANDARD", ()), ("ACCELERATED", ())]);
static SSE_ALGORITHM: Enumeration<()> = Enumeration(&[("AES256", ()), ("KMS", ())]);

pub(crate) async fn start(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: StartBulkPutItemsInput = request(body)?;
    let constrained = constrain(&input)?;
    if context.options.object_store.is_none() {
        return Err(transfer::no_object_store("StartBulkPutItems"));
    }
    let name = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let table = context.engine.current_table(&name).await;
    let table = table.map_err(|error| context.table(&name.name, error))?;
    let definition = table.definition();
    let indexes = &definition.global_indexes;
    if indexes.iter().any(|index| matches!(index.status, IndexStatus::Creating { .. })) {
        return Err(transfer::bulk_table_busy(&name.name));
    }
    let parameters = parameters(context, &input, constrained, definition.uuid.clone(), body);
    let new = NewJob {
        namespace: (**context.namespace).clone(),
        kind: BULK_KIND,
        table: Some(name.name.clone()),
        token: Some(parameters.token.clone()),
        token_lifetime_ms: TOKEN_LIFETIME_MS,
        parameters: parameters.encode(),
        progress: ImportProgress::default().encode(),
    };
    check_idle(context, &name.name, &parameters.token).await?;
    let started = context.engine.start_job(new).await;
    let row = match started.map_err(|error| context.table(&name.name, error))? {
        Started::New(row) => row,
        Started::Existing(row) if row.parameters == parameters.encode() => row,
        Started::Existing(_) => return Err(transfer::bulk_token_mismatch()),
    };
    Ok(described(&row))
}

pub(crate) async fn describe(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    Ok(described(&find(context, body).await?))
}

pub(crate) async fn cancel(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let row = find(context, body).await?;
    let cancelled = context.engine.cancel_job(context.namespace, BULK_KIND, &row.id).await;
    let row = cancelled.map_err(|error| context.table("", error))?.unwrap_or(row);
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("BulkOperationArn").string(&bulk_arn(&row));
        writer.name("BulkOperationStatus").string("CANCELLING");
    });
    Ok(Reply(writer.finish()))
}

pub(crate) async fn list(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: ListBulkOperationsInput = request(body)?;
    let mut violations = Violations::new();
    let limit = constrain_limit(input.max_results, "maxResults", &mut violations);
    violations.finish()?;
    let token = input.next_token.as_deref();
    let page = JobPage::read(context, BULK_KIND, token, limit, |_| true).await?;
    Ok(page.reply("BulkOperationsSummaryList", |writer, row| {
        writer.object(|writer| write_bulk_head(writer, row));
    }))
}

shape! {
    struct StartBulkPutItemsInput {
        "ClientToken" => client_token: String,
        "InputS3Configuration" => input_s3_configuration: InputS3Configuration,
        "OutputS3Configuration" => output_s3_configuration: OutputS3Configuration,
        "TableName" => table_name: String,
        "MaxWriteRequestUnits" => max_write_request_units: i64,
        "PerformanceTier" => performance_tier: String,
    }

    struct InputS3Configuration {
        "S3BucketOwner" => s3_bucket_owner: String,
        "S3Bucket" => s3_bucket: String,
        "S3KeyPrefix" => s3_key_prefix: String,
        "InputFormat" => input_format: String,
        "InputCompressionType" => input_compression_type: String,
    }

    struct OutputS3Configuration {
        "S3BucketOwner" => s3_bucket_owner: String,
        "S3Bucket" => s3_bucket: String,
        "S3KeyPrefix" => s3_key_prefix: String,
        "S3SseAlgorithm" => s3_sse_algorithm: String,
        "S3SseKmsKeyId" => s3_sse_kms_key_id: String,
        "OutputType" => output_type: Vec<String>,
    }

    struct BulkOperationInput {
        "BulkOperationArn" => bulk_operation_arn: String,
    }

    struct ListBulkOperationsInput {
        "MaxResults" => max_results: i32,
        "NextToken" => next_token: String,
    }
}

/// The members that the constraints have narrowed.
#[derive(Clone, Copy)]
struct Constrained {
    format: Format,
    compression: Compression,
    reports_errors: bool,
}

fn constrain(input: &StartBulkPutItemsInput) -> Result<Constrained, ApiError> {
    let mut violations = Violations::new();
    let token = input.client_token.as_deref();
    if let Some(token) = token.filter(|token| token.is_empty() || token.contains('$')) {
        violations.add(Some(token), "clientToken", Constraint::Pattern(TOKEN_PATTERN));
    }
    let (mut format, mut compression, mut reports_errors) = (None, None, false);
    let path = "inputS3Configuration";
    match &input.input_s3_configuration {
        None => violations.add(None, path, Constraint::NotNull),
        Some(given) => {
            constrain_bucket(
                given.s3_bucket.as_deref(),
                given.s3_key_prefix.as_deref(),
                given.s3_bucket_owner.as_deref(),
                path,
                &mut violations,
            );
            format = violations.required_enumeration(
                given.input_format.as_deref(),
                &format!("{path}.inputFormat"),
                &BULK_FORMAT,
            );
            compression = violations.enumeration(
                given.input_compression_type.as_deref(),
                &format!("{path}.inputCompressionType"),
                &INPUT_COMPRESSION,
            );
        }
    }
    match &input.output_s3_configuration {
        None => violations.add(None, "outputS3Configuration", Constraint::NotNull),
        Some(given) => reports_errors = constrain_output(given, &mut violations),
    }
    if input.table_name.is_none() {
        violations.add(None, "tableName", Constraint::NotNull);
    }
    if let Some(units) = input.max_write_request_units {
        violations.range(units, "maxWriteRequestUnits", UNITS_MIN, i64::MAX);
    }
    let tier = input.performance_tier.as_deref();
    violations.enumeration(tier, "performanceTier", &PERFORMANCE_TIER);
    violations.finish()?;
    Ok(Constrained {
        format: format.unwrap_or(Format::DynamoDbJson),
        compression: compression.unwrap_or(Compression::None),
        reports_errors,
    })
}

/// Returns whether errors are to be reported.
fn constrain_output(given: &OutputS3Configuration, violations: &mut Violations) -> bool {
    let path = "outputS3Configuration";
    constrain_bucket(
        given.s3_bucket.as_deref(),
        given.s3_key_prefix.as_deref(),
        given.s3_bucket_owner.as_deref(),
        path,
        violations,
    );
    let algorithm = given.s3_sse_algorithm.as_deref();
    violations.enumeration(algorithm, &format!("{path}.s3SseAlgorithm"), &SSE_ALGORITHM);
    let types_path = format!("{path}.outputType");
    let types = match &given.output_type {
        None => {
            violations.add(None, &types_path, Constraint::NotNull);
            return false;
        }
        Some(types) => types,
    };
    violations.count(types.len(), &types_path, 1, usize::MAX, || "[]".to_owned());
    let mut reports_errors = false;
    for (position, name) in types.iter().enumerate() {
        let path = format!("{types_path}.{}.member", position + 1);
        reports_errors |= violations.enumeration(Some(name), &path, &OUTPUT_TYPE) == Some(true);
    }
    reports_errors
}

fn parameters(
    context: &Context<'_>,
    input: &StartBulkPutItemsInput,
    constrained: Constrained,
    table_id: String,
    body: &[u8],
) -> BulkParameters {
    let source = input.input_s3_configuration.clone().unwrap_or_default();
    let output = input.output_s3_configuration.clone().unwrap_or_default();
    let member = |name: &str| raw_member(body, name).unwrap_or_default().to_owned();
    let report = output.s3_bucket.filter(|_| constrained.reports_errors).map(|bucket| {
        let prefix = output.s3_key_prefix.unwrap_or_default();
        let prefix = prefix.strip_suffix('/').unwrap_or(&prefix);
        let separator = if prefix.is_empty() { "" } else { "/" };
        (bucket, format!("{prefix}{separator}AWSDynamoDB/{BULK_KIND}"))
    });
    let units = input.max_write_request_units.and_then(|units| u64::try_from(units).ok());
    BulkParameters {
        table_id,
        bucket: source.s3_bucket.unwrap_or_default(),
        prefix: source.s3_key_prefix,
        format: constrained.format,
        compression: constrained.compression,
        report,
        units_per_second: units,
        tier: input.performance_tier.clone().unwrap_or_else(|| "STANDARD".to_owned()),
        token: input.client_token.clone().unwrap_or_else(|| context.engine.new_uuid()),
        input: member("InputS3Configuration"),
        output: member("OutputS3Configuration"),
    }
}

/// Only one operation at a time may run on a table; the one with the same token is no other.
async fn check_idle(context: &Context<'_>, table: &str, token: &str) -> Result<(), ApiError> {
    let jobs = context.engine.jobs(context.namespace, BULK_KIND, None, RUNNING_LOOKED_AT_MAX).await;
    let (rows, _) = jobs.map_err(|error| context.table(table, error))?;
    let is_other = |row: &JobRow| {
        let is_same_token = row.token.as_deref() == Some(token);
        !row.status.is_final() && row.table.as_deref() == Some(table) && !is_same_token
    };
    match rows.iter().any(is_other) {
        true => Err(transfer::bulk_table_busy(table)),
        false => Ok(()),
    }
}

async fn find(context: &Context<'_>, body: &[u8]) -> Result<JobRow, ApiError> {
    let input: BulkOperationInput = request(body)?;
    let mut violations = Violations::new();
    constrain_arn(input.bulk_operation_arn.as_deref(), "bulkOperationArn", &mut violations);
    let arn = violations.required(input.bulk_operation_arn, "bulkOperationArn");
    violations.finish()?;
    let id = arn.rsplit_once('/').map_or("", |(_, id)| id);
    let found = context.engine.job(context.namespace, BULK_KIND, id).await;
    let found = found.map_err(|error| context.table("", error))?;
    found.filter(|row| bulk_arn(row) == arn).ok_or_else(|| transfer::bulk_not_found(&arn))
}

fn described(row: &JobRow) -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| write_bulk_operation(writer.name("BulkOperationDescription"), row));
    Reply(writer.finish())
}
