//! DescribeImport and ListImports.

use zenobe_engine::jobs::JobRow;
use zenobe_engine::schema::table_arn;

use super::job_page::{JobPage, TOKEN_LENGTH_MIN, constrain_limit};
use super::stream_input::required_arn;
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::imports::{KIND, write_import, write_import_summary};
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::constraint::Constraint;
use crate::messages::transfer;
use crate::{Context, Reply};

pub(crate) async fn describe(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: DescribeImportInput = request(body)?;
    let mut violations = Violations::new();
    let arn = required_arn(input.import_arn, "importArn", &mut violations);
    violations.finish()?;
    let row = find(context, &arn).await?;
    let mut writer = Writer::new();
    writer.object(|writer| write_import(writer.name("ImportTableDescription"), &row));
    Ok(Reply(writer.finish()))
}

pub(crate) async fn list(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: ListImportsInput = request(body)?;
    let limit = constrain(&input)?;
    let table = input.table_arn.as_deref().map(|arn| table_of(context, arn)).transpose()?;
    let is_shown = |row: &JobRow| table.is_none() || row.table == table;
    let page = JobPage::read(context, KIND, input.next_token.as_deref(), limit, is_shown).await?;
    Ok(page.reply("ImportSummaryList", write_import_summary))
}

shape! {
    struct DescribeImportInput {
        "ImportArn" => import_arn: String,
    }

    struct ListImportsInput {
        "TableArn" => table_arn: String,
        "PageSize" => page_size: i32,
        "NextToken" => next_token: String,
    }
}

fn constrain(input: &ListImportsInput) -> Result<usize, ApiError> {
    let mut violations = Violations::new();
    if let Some(arn) = &input.table_arn {
        violations.length(arn, "tableArn", 1, 1_024);
    }
    let limit = constrain_limit(input.page_size, "pageSize", &mut violations);
    if let Some(token) = &input.next_token {
        violations.length(token, "nextToken", TOKEN_LENGTH_MIN, 1_024);
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if !token.bytes().all(is_digit) || !token.len().is_multiple_of(16) {
            violations.add(Some(token), "nextToken", Constraint::Pattern("([0-9a-f]{16})+"));
        }
    }
    violations.finish()?;
    Ok(limit)
}

/// The import that an ARN names.
async fn find(context: &Context<'_>, arn: &str) -> Result<JobRow, ApiError> {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let ["arn", _, "dynamodb", region, account, resource] = parts[..] else {
        return Err(transfer::invalid_import_arn());
    };
    let elements: Vec<&str> = resource.split('/').collect();
    let ["table", table, KIND, id] = elements[..] else {
        return Err(transfer::invalid_import_arn());
    };
    let namespace = context.namespace;
    if account != namespace.account {
        return Err(transfer::other_account());
    }
    let found = match region == namespace.region {
        true => context.engine.job(namespace, KIND, id).await,
        false => Ok(None),
    };
    let found = found.map_err(|error| context.table(table, error))?;
    let is_its = |row: &JobRow| row.table.as_deref() == Some(table);
    found.filter(is_its).ok_or_else(|| transfer::import_not_found(arn))
}

/// The name of the table that an ARN names, whether or not it exists.
pub(crate) fn table_of(context: &Context<'_>, arn: &str) -> Result<String, ApiError> {
    let name = arn.rsplit_once("table/").map_or("", |(_, name)| name);
    match table_arn(context.namespace, name) == arn && !name.is_empty() {
        true => Ok(name.to_owned()),
        false => Err(transfer::invalid_table_arn()),
    }
}
