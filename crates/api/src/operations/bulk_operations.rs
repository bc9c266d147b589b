//! StartBulkPutItems, DescribeBulkOperation, CancelBulkOperation and ListBulkOperations.

use zenobe_engine::error::Error;
use zenobe_engine::jobs::{JobRow, NewJob, Started};
use zenobe_engine::schema::IndexStatus;
use zenobe_transfer::{Compression, Format};

use super::import_table::{TOKEN_LIFETIME_MS, TOKEN_PATTERN, constrain_bucket};
use super::job_page::{JobPage, constrain_limit};
use super::stream_input::required_arn;
use crate::constraints::{Enumeration, TableNameRule, Violations};
use crate::error::ApiError;
use crate::exports::{SSE_ALGORITHM, SseAlgorithm};
use crate::imports::{
    BULK_FORMAT, BULK_KIND, BulkParameters, BulkReport, INPUT_COMPRESSION, ImportProgress,
    bulk_arn, write_bulk_head, write_bulk_operation,
};
use crate::json::Writer;
use crate::json::decode::{raw_member, request, shape};
use crate::messages::constraint::Constraint;
use crate::messages::{export, transfer};
use crate::{Context, Reply};

const UNITS_MIN: i64 = 1_024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputType {
    Error,
    ConditionCheckFailure,
}

static OUTPUT_TYPE: Enumeration<OutputType> = Enumeration(&[
    ("ERROR", OutputType::Error),
    ("CONDITION_CHECK_FAILURE", OutputType::ConditionCheckFailure),
]);
static PERFORMANCE_TIER: Enumeration<()> = Enumeration(&[("STANDARD", ()), ("ACCELERATED", ())]);

pub(crate) async fn start(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: StartBulkPutItemsInput = request(body)?;
    let constrained = constrain(&input)?;
    if context.options.object_store.is_none() {
        return Err(transfer::no_object_store("StartBulkPutItems"));
    }
    let name = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let mut parameters = parameters(context, &input, constrained, body);
    loop {
        let table = context.engine.current_table(&name).await;
        let table = table.map_err(|error| context.table(&name.name, error))?;
        let definition = table.definition();
        let indexes = &definition.global_indexes;
        if indexes.iter().any(|index| matches!(index.status, IndexStatus::Creating { .. })) {
            return Err(transfer::bulk_table_busy(&name.name));
        }
        parameters.table_id.clone_from(&definition.uuid);
        let new = NewJob {
            namespace: (**context.namespace).clone(),
            kind: BULK_KIND,
            table: Some(name.name.clone()),
            token: Some(parameters.token.clone()),
            token_lifetime_ms: TOKEN_LIFETIME_MS,
            parameters: parameters.encode(),
            progress: ImportProgress::default().encode(),
        };
        return match context.engine.start_sole_job(new, &table).await {
            Ok(Some(Started::New(row))) => Ok(described(&row)),
            Ok(Some(Started::Existing(row))) if row.parameters == parameters.encode() => {
                Ok(described(&row))
            }
            Ok(Some(Started::Existing(_))) => Err(transfer::bulk_token_mismatch()),
            Ok(None) => Err(transfer::bulk_table_busy(&name.name)),
            Err(Error::TableChanged { .. }) => continue,
            Err(error) => Err(context.table(&name.name, error)),
        };
    }
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
    output: Output,
}

/// How to report what is not put.
#[derive(Debug, Clone, Copy)]
struct Output {
    has_errors: bool,
    has_conditions: bool,
    sse: SseAlgorithm,
}

fn constrain(input: &StartBulkPutItemsInput) -> Result<Constrained, ApiError> {
    let mut violations = Violations::new();
    let token = input.client_token.as_deref();
    if let Some(token) = token.filter(|token| token.is_empty() || token.contains('$')) {
        violations.add(Some(token), "clientToken", Constraint::Pattern(TOKEN_PATTERN));
    }
    let (mut format, mut compression, mut output) = (None, None, None);
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
        Some(given) => output = constrain_output(given, &mut violations),
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
    let none = Output { has_errors: false, has_conditions: false, sse: SseAlgorithm::Aes256 };
    let output = output.unwrap_or(none);
    let key = input.output_s3_configuration.as_ref().and_then(|it| it.s3_sse_kms_key_id.as_ref());
    if key.is_some() && output.sse != SseAlgorithm::Kms {
        return Err(export::kms_key_unexpected());
    }
    Ok(Constrained {
        format: format.unwrap_or(Format::DynamoDbJson),
        compression: compression.unwrap_or(Compression::None),
        output,
    })
}

fn constrain_output(given: &OutputS3Configuration, violations: &mut Violations) -> Option<Output> {
    let path = "outputS3Configuration";
    constrain_bucket(
        given.s3_bucket.as_deref(),
        given.s3_key_prefix.as_deref(),
        given.s3_bucket_owner.as_deref(),
        path,
        violations,
    );
    let algorithm = given.s3_sse_algorithm.as_deref();
    let sse = violations.enumeration(algorithm, &format!("{path}.s3SseAlgorithm"), &SSE_ALGORITHM);
    if let Some(key) = &given.s3_sse_kms_key_id {
        violations.length(key, &format!("{path}.s3SseKmsKeyId"), 1, 2_048);
    }
    let types_path = format!("{path}.outputType");
    let types = match &given.output_type {
        None => {
            violations.add(None, &types_path, Constraint::NotNull);
            return None;
        }
        Some(types) => types,
    };
    violations.count(types.len(), &types_path, 1, usize::MAX, || "[]".to_owned());
    let mut wanted = Vec::new();
    for (position, name) in types.iter().enumerate() {
        let path = format!("{types_path}.{}.member", position + 1);
        wanted.extend(violations.enumeration(Some(name), &path, &OUTPUT_TYPE));
    }
    Some(Output {
        has_errors: wanted.contains(&OutputType::Error),
        has_conditions: wanted.contains(&OutputType::ConditionCheckFailure),
        sse: sse.unwrap_or(SseAlgorithm::Aes256),
    })
}

fn parameters(
    context: &Context<'_>,
    input: &StartBulkPutItemsInput,
    constrained: Constrained,
    body: &[u8],
) -> BulkParameters {
    let source = input.input_s3_configuration.clone().unwrap_or_default();
    let output = input.output_s3_configuration.clone().unwrap_or_default();
    let member = |name: &str| raw_member(body, name).unwrap_or_default().to_owned();
    let prefix = output.s3_key_prefix.unwrap_or_default();
    let prefix = prefix.strip_suffix('/').unwrap_or(&prefix);
    let separator = if prefix.is_empty() { "" } else { "/" };
    let Output { has_errors, has_conditions, sse } = constrained.output;
    let report = BulkReport {
        bucket: output.s3_bucket.unwrap_or_default(),
        prefix: format!("{prefix}{separator}AWSDynamoDB/{BULK_KIND}"),
        has_errors,
        has_conditions,
        sse,
        kms_key: output.s3_sse_kms_key_id,
    };
    let units = input.max_write_request_units.and_then(|units| u64::try_from(units).ok());
    BulkParameters {
        table_id: String::new(),
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

async fn find(context: &Context<'_>, body: &[u8]) -> Result<JobRow, ApiError> {
    let input: BulkOperationInput = request(body)?;
    let mut violations = Violations::new();
    let arn = required_arn(input.bulk_operation_arn, "bulkOperationArn", &mut violations);
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
