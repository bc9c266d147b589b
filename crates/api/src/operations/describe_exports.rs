//! DescribeExport and ListExports.

use zenobe_engine::command::TableName;
use zenobe_engine::error::Error;
use zenobe_engine::jobs::JobRow;

use super::describe_imports::table_of;
use super::job_page::{JobPage, constrain_limit};
use super::stream_input::required_arn;
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::exports::{ExportArn, ExportParameters, KIND, write_export, write_export_summary};
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::{export, transfer};
use crate::{Context, Reply};

pub(crate) async fn describe(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: DescribeExportInput = request(body)?;
    let mut violations = Violations::new();
    let arn = required_arn(input.export_arn, "exportArn", &mut violations);
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
    let limit = constrain_limit(input.max_results, "maxResults", &mut violations);
    violations.finish()?;
    let table = match input.table_arn.as_deref() {
        None => None,
        Some(arn) => Some(incarnation(context, arn).await?),
    };
    let is_shown = |row: &JobRow| match &table {
        None => true,
        Some(None) => false,
        Some(Some(table_id)) => ExportParameters::decode(&row.parameters)
            .is_some_and(|parameters| parameters.table_id == *table_id),
    };
    let page = JobPage::read(context, KIND, input.next_token.as_deref(), limit, is_shown).await?;
    Ok(page.reply("ExportSummaries", write_export_summary))
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

/// The `TableId` of the table that an ARN names now. If there is none, `None`, and no exports are shown.
async fn incarnation(context: &Context<'_>, arn: &str) -> Result<Option<String>, ApiError> {
    let name = table_of(context, arn)?;
    let table = TableName { namespace: context.namespace.clone(), name };
    match context.engine.current_table(&table).await {
        Ok(table) => Ok(Some(table.definition().uuid.clone())),
        Err(Error::TableNotFound { .. } | Error::TableFilling { .. }) => Ok(None),
        Err(error) => Err(context.table(&table.name, error)),
    }
}
