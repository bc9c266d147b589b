//! ExportTableToPointInTime: starts a job that writes a table's items, or what changed of them, to a bucket.

use std::sync::Arc;

use zenobe_engine::command::TableName;
use zenobe_engine::error::Error;
use zenobe_engine::export::{ExportRequest, ExportSpan, Exportable, key_names};
use zenobe_engine::jobs::{JobRow, NewJob, Started};

use super::get_shard_iterator::WireTimestamp;
use super::import_table::{
    BUCKET_PATTERN, OWNER_PATTERN, TOKEN_LIFETIME_MS, TOKEN_PATTERN, is_account, is_bucket_name,
};
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::exports::{
    BoundFilter, EXPORT_FORMAT, EXPORT_TYPE, EXPORT_VIEW, ExportParameters, ExportProgress,
    ExportType, Filter, FilterSpecification, Given, Incremental, KIND, SSE_ALGORITHM, SseAlgorithm,
    write_export,
};
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::constraint::Constraint;
use crate::messages::{backup, export, transfer};
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let mut input: ExportTableToPointInTimeInput = request(body)?;
    let token = input.client_token.take();
    let given = checked(token.as_deref(), input)?;
    let table = table_of(context, &given.table_arn)?;
    let row = match earlier(context, &given, token.as_deref()).await? {
        Some(row) => row,
        None => begin(context, &table, &given, token.as_deref()).await?,
    };
    let mut writer = Writer::new();
    writer.object(|writer| write_export(writer.name("ExportDescription"), &row));
    Ok(Reply(writer.finish()))
}

/// The export that this request has started before. It stays the answer, whatever has become of the table since.
async fn earlier(
    context: &Context<'_>,
    given: &Given,
    token: Option<&str>,
) -> Result<Option<JobRow>, ApiError> {
    let Some(token) = token else { return Ok(None) };
    let row = context.engine.job_of_token(context.namespace, KIND, token).await;
    match row.map_err(|error| context.backup(error))? {
        Some(row) => of_same_request(row, given).map(Some),
        None => Ok(None),
    }
}

/// A token goes with one request.
fn of_same_request(row: JobRow, given: &Given) -> Result<JobRow, ApiError> {
    let earlier = ExportParameters::decode(&row.parameters);
    match earlier.is_some_and(|earlier| earlier.given == *given) {
        true => Ok(row),
        false => Err(export::export_conflict()),
    }
}

/// Starts an export, if the table can be exported.
async fn begin(
    context: &Context<'_>,
    table: &TableName,
    given: &Given,
    token: Option<&str>,
) -> Result<JobRow, ApiError> {
    loop {
        let bound = given.filter.as_ref().map(Filter::bind).transpose()?.unwrap_or_default();
        let exportable = exportable(context, table, given, bound).await?;
        if context.options.object_store.is_none() {
            return Err(transfer::no_object_store("ExportTableToPointInTime"));
        }
        if let Some(row) = start(context, table, given, token, exportable).await? {
            return Ok(row);
        }
    }
}

shape! {
    struct ExportTableToPointInTimeInput {
        "TableArn" => table_arn: String,
        "ExportTime" => export_time: WireTimestamp,
        "ClientToken" => client_token: String,
        "S3Bucket" => s3_bucket: String,
        "S3BucketOwner" => s3_bucket_owner: String,
        "S3Prefix" => s3_prefix: String,
        "S3SseAlgorithm" => s3_sse_algorithm: String,
        "S3SseKmsKeyId" => s3_sse_kms_key_id: String,
        "ExportFormat" => export_format: String,
        "ExportType" => export_type: String,
        "IncrementalExportSpecification" => incremental_export_specification:
            IncrementalExportSpecification,
        "FilterSpecification" => filter_specification: FilterSpecification,
    }

    struct IncrementalExportSpecification {
        "ExportFromTime" => export_from_time: WireTimestamp,
        "ExportToTime" => export_to_time: WireTimestamp,
        "ExportViewType" => export_view_type: String,
    }
}

/// Everything that can be checked without a table.
fn checked(token: Option<&str>, input: ExportTableToPointInTimeInput) -> Result<Given, ApiError> {
    let mut violations = Violations::new();
    let arn = input.table_arn;
    if let Some(arn) = &arn {
        violations.length(arn, "tableArn", 1, 1_024);
    }
    let table_arn = violations.required(arn, "tableArn");
    constrain_texts(
        token,
        input.s3_bucket.as_deref(),
        input.s3_bucket_owner.as_deref(),
        input.s3_prefix.as_deref(),
        &mut violations,
    );
    let sse = input.s3_sse_algorithm.as_deref();
    let sse = violations.enumeration(sse, "s3SseAlgorithm", &SSE_ALGORITHM);
    if let Some(key) = &input.s3_sse_kms_key_id {
        violations.length(key, "s3SseKmsKeyId", 1, 2_048);
    }
    let format = input.export_format.as_deref();
    let format = violations.enumeration(format, "exportFormat", &EXPORT_FORMAT);
    let export_type = input.export_type.as_deref();
    let export_type = violations.enumeration(export_type, "exportType", &EXPORT_TYPE);
    let specification = input.incremental_export_specification;
    let view = specification.as_ref().and_then(|given| given.export_view_type.as_deref());
    let path = "incrementalExportSpecification.exportViewType";
    let view = violations.enumeration(view, path, &EXPORT_VIEW);
    violations.finish()?;
    let from = specification.as_ref().map(|given| given.export_from_time);
    let from_ms = from_time(export_type, from)?;
    if input.s3_sse_kms_key_id.is_some() && sse != Some(SseAlgorithm::Kms) {
        return Err(export::kms_key_unexpected());
    }
    let to = specification.and_then(|given| given.export_to_time);
    Ok(Given {
        table_arn,
        export_time_ms: input.export_time.map(|time| time.at_ms),
        bucket: input.s3_bucket.unwrap_or_default(),
        owner: input.s3_bucket_owner,
        prefix: input.s3_prefix,
        sse,
        kms_key: input.s3_sse_kms_key_id,
        format,
        export_type,
        incremental: from_ms.map(|from_ms| Incremental {
            from_ms,
            to_ms: to.map(|to| to.at_ms),
            view,
        }),
        filter: input.filter_specification.map(Filter::check).transpose()?,
    })
}

fn constrain_texts(
    token: Option<&str>,
    bucket: Option<&str>,
    owner: Option<&str>,
    prefix: Option<&str>,
    violations: &mut Violations,
) {
    if let Some(token) = token.filter(|token| token.is_empty() || token.contains('$')) {
        violations.add(Some(token), "clientToken", Constraint::Pattern(TOKEN_PATTERN));
    }
    match bucket {
        None => violations.add(None, "s3Bucket", Constraint::NotNull),
        Some(bucket) => {
            violations.length(bucket, "s3Bucket", 0, 255);
            if !is_bucket_name(bucket) {
                violations.add(Some(bucket), "s3Bucket", Constraint::Pattern(BUCKET_PATTERN));
            }
        }
    }
    if let Some(owner) = owner.filter(|owner| !is_account(owner)) {
        violations.add(Some(owner), "s3BucketOwner", Constraint::Pattern(OWNER_PATTERN));
    }
    if let Some(prefix) = prefix {
        violations.length(prefix, "s3Prefix", 1, 1_024);
    }
}

/// Where an incremental export begins. `from` is the member of the specification, if there is one.
fn from_time(
    export_type: Option<ExportType>,
    from: Option<Option<WireTimestamp>>,
) -> Result<Option<u64>, ApiError> {
    match (export_type, from) {
        (Some(ExportType::Incremental), None) => Err(export::specification_expected()),
        (None, Some(_)) => Err(export::type_expected()),
        (Some(ExportType::Full), Some(_)) => Err(export::specification_of_full_export()),
        (Some(ExportType::Incremental), Some(None)) => Err(export::from_time_required()),
        (Some(ExportType::Incremental), Some(Some(from))) => Ok(Some(from.at_ms)),
        (None | Some(ExportType::Full), None) => Ok(None),
    }
}

/// The table that an ARN names. Tables of other regions count as missing.
fn table_of(context: &Context<'_>, arn: &str) -> Result<TableName, ApiError> {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let ["arn", "aws", "dynamodb", region, account, resource] = parts[..] else {
        return Err(export::table_arn_invalid());
    };
    let Some(("table", name)) = resource.split_once('/') else {
        return Err(export::table_arn_invalid());
    };
    if name.contains('/') {
        return Err(export::index_arn());
    }
    if account != context.namespace.account {
        return Err(transfer::other_account());
    }
    if region != context.namespace.region {
        return Err(backup::table_not_found(arn));
    }
    Ok(TableName { namespace: Arc::clone(context.namespace), name: name.to_owned() })
}

async fn exportable(
    context: &Context<'_>,
    table: &TableName,
    given: &Given,
    bound: BoundFilter,
) -> Result<Exportable, ApiError> {
    let span = match given.incremental {
        None => ExportSpan::Full { at_ms: given.export_time_ms },
        Some(Incremental { from_ms, to_ms, .. }) => ExportSpan::Incremental { from_ms, to_ms },
    };
    let BoundFilter { key_conditions, filter, projection } = bound;
    let request = ExportRequest { table: table.clone(), span, key_conditions, filter, projection };
    context.engine.exportable(&request).await.map_err(|error| match error {
        Error::TableNotFound { .. } | Error::TableFilling { .. } => {
            backup::table_not_found(&given.table_arn)
        }
        error => context.backup(error),
    })
}

/// Starts the job, or finds that of the same token. Returns nothing if the table has changed meanwhile.
async fn start(
    context: &Context<'_>,
    table: &TableName,
    given: &Given,
    token: Option<&str>,
    exportable: Exportable,
) -> Result<Option<JobRow>, ApiError> {
    let parameters = ExportParameters {
        given: given.clone(),
        table_id: exportable.definition.uuid.clone(),
        keys: key_names(&exportable.definition),
        source: exportable.source.clone(),
        token: token.map_or_else(|| context.engine.new_uuid(), str::to_owned),
        to_ms: exportable.at_ms,
        seed: context.engine.new_uuid(),
    };
    let new = NewJob {
        namespace: (**context.namespace).clone(),
        kind: KIND,
        table: Some(table.name.clone()),
        token: Some(parameters.token.clone()),
        token_lifetime_ms: TOKEN_LIFETIME_MS,
        parameters: parameters.encode(),
        progress: ExportProgress::default().encode(),
    };
    match context.engine.start_export(new, &exportable).await {
        Ok(Started::New(row)) => Ok(Some(row)),
        Ok(Started::Existing(row)) => of_same_request(row, given).map(Some),
        Err(Error::TableChanged { .. }) => Ok(None),
        Err(error) => Err(context.backup(error)),
    }
}
