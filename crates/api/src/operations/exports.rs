//! DescribeExport and ListExports.

use zenobe_engine::command::TableName;
use zenobe_engine::error::Error;
use zenobe_engine::jobs::JobRow;

use super::imports::{decode_token, encode_token, table_of};
use super::stream_input::constrain_arn;
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::exports::{ExportArn, ExportParameters, KIND, write_export, write_export_summary};
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::{export, transfer};
use crate::{Context, Reply};

const PAGE_SIZE_DEFAULT: i64 = 10;
const PAGE_SIZE_MAX: i64 = 25;

pub(crate) async fn describe(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: DescribeExportInput = request(body)?;
    let mut violations = Violations::new();
    constrain_arn(input.export_arn.as_deref(), "exportArn", &mut violations);
    let arn = violations.required(input.export_arn, "exportArn");
    violations.finish()?;
    let row = find(context, &arn).await?;
    let mut writer = Writer::new();
    writer.object(|writer| write_export(writer.name("ExportDescription"), &row));
    Ok(Reply(writer.finish()))
}

pub(crate) async fn list(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: ListExportsInput = request(body)?;
    let mut violations = Violations::new();
    if let Some(arn) = &input.table_arn {
        violations.length(arn, "tableArn", 1, 1_024);
    }
    let limit = input.max_results.map_or(PAGE_SIZE_DEFAULT, i64::from);
    violations.range(limit, "maxResults", 1, PAGE_SIZE_MAX);
    violations.finish()?;
    let table = match input.table_arn.as_deref() {
        None => None,
        Some(arn) => Some(incarnation(context, arn).await?),
    };
    let before = input.next_token.as_deref().map(decode_token).transpose()?;
    let limit = usize::try_from(limit).unwrap_or_default();
    let (rows, more) = page(context, table.as_ref(), before, limit).await?;
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("ExportSummaries").array(&rows, write_export_summary);
        if let Some(last) = rows.last().filter(|_| more) {
            writer.name("NextToken").string(&encode_token(&last.id));
        }
    });
    Ok(Reply(writer.finish()))
}

shape! {
    struct DescribeExportInput {
        "ExportArn" => export_arn: String,
    }

    struct ListExportsInput {
        "TableArn" => table_arn: String,
        "MaxResults" => max_results: i32,
        "NextToken" => next_token: String,
    }
}

/// The export that an ARN names.
async fn find(context: &Context<'_>, arn: &str) -> Result<JobRow, ApiError> {
    let ExportArn { namespace, table, id } =
        ExportArn::parse(arn).ok_or_else(export::invalid_export_arn)?;
    if namespace.account != context.namespace.account {
        return Err(transfer::other_account());
    }
    if namespace.region != context.namespace.region {
        return Err(export::export_of_another_region());
    }
    let found = context.engine.job(&namespace, KIND, &id).await;
    let found = found.map_err(|error| context.table(&table, error))?;
    let is_its = |row: &JobRow| row.table.as_ref() == Some(&table);
    found.filter(is_its).ok_or_else(|| export::export_not_found(arn))
}

/// The `TableId` of the table that an ARN names now; `None` if there is none, whose exports nobody sees.
async fn incarnation(context: &Context<'_>, arn: &str) -> Result<Option<String>, ApiError> {
    let name = table_of(context, arn)?;
    let table = TableName { namespace: context.namespace.clone(), name };
    match context.engine.current_table(&table).await {
        Ok(table) => Ok(Some(table.definition().uuid.clone())),
        Err(Error::TableNotFound { .. } | Error::TableFilling { .. }) => Ok(None),
        Err(error) => Err(context.table(&table.name, error)),
    }
}

/// Exports, newest first: all of them, or those of a table. Also tells whether there are more.
async fn page(
    context: &Context<'_>,
    table: Option<&Option<String>>,
    mut before: Option<String>,
    limit: usize,
) -> Result<(Vec<JobRow>, bool), ApiError> {
    let is_shown = |row: &JobRow| match table {
        None => true,
        Some(table_id) => {
            let parameters = ExportParameters::decode(&row.parameters);
            parameters.map(|parameters| parameters.table_id) == *table_id && table_id.is_some()
        }
    };
    let mut rows: Vec<JobRow> = Vec::new();
    // One more than the page shows whether there are more.
    while rows.len() <= limit {
        let page =
            context.engine.jobs(context.namespace, KIND, before.as_deref(), PAGE_SIZE_MAX as usize);
        let (page, more) = page.await.map_err(|error| context.table("", error))?;
        before = page.last().map(|row| row.id.clone());
        rows.extend(page.into_iter().filter(is_shown));
        if !more {
            break;
        }
    }
    let more = rows.len() > limit;
    rows.truncate(limit);
    Ok((rows, more))
}
