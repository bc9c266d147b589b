//! DescribeImport and ListImports.

use zenobe_engine::jobs::JobRow;
use zenobe_engine::schema::table_arn;

use super::stream_input::constrain_arn;
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::imports::{KIND, write_import, write_import_summary};
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::constraint::Constraint;
use crate::messages::transfer;
use crate::{Context, Reply};

const PAGE_SIZE_DEFAULT: i64 = 10;
const PAGE_SIZE_MAX: i64 = 25;
/// The shortest token: the model says so.
const TOKEN_LENGTH_MIN: usize = 112;

pub(crate) async fn describe(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: DescribeImportInput = request(body)?;
    let mut violations = Violations::new();
    constrain_arn(input.import_arn.as_deref(), "importArn", &mut violations);
    let arn = violations.required(input.import_arn, "importArn");
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
    let mut before = input.next_token.as_deref().map(decode_token).transpose()?;
    let mut rows: Vec<JobRow> = Vec::new();
    // One more than the page shows whether there are more.
    while rows.len() <= limit {
        let page =
            context.engine.jobs(context.namespace, KIND, before.as_deref(), PAGE_SIZE_MAX as usize);
        let (page, more) = page.await.map_err(|error| context.table("", error))?;
        before = page.last().map(|row| row.id.clone());
        rows.extend(page.into_iter().filter(|row| table.is_none() || row.table == table));
        if !more {
            break;
        }
    }
    let more = rows.len() > limit;
    rows.truncate(limit);
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("ImportSummaryList").array(&rows, write_import_summary);
        if let Some(last) = rows.last().filter(|_| more) {
            writer.name("NextToken").string(&encode_token(&last.id));
        }
    });
    Ok(Reply(writer.finish()))
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
    let page_size = input.page_size.map_or(PAGE_SIZE_DEFAULT, i64::from);
    violations.range(page_size, "pageSize", 1, PAGE_SIZE_MAX);
    if let Some(token) = &input.next_token {
        violations.length(token, "nextToken", TOKEN_LENGTH_MIN, 1_024);
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if !token.bytes().all(is_digit) || !token.len().is_multiple_of(16) {
            violations.add(Some(token), "nextToken", Constraint::Pattern("([0-9a-f]{16})+"));
        }
    }
    violations.finish()?;
    Ok(usize::try_from(page_size).unwrap_or_default())
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

/// The id in hexadecimal, filled with zeros to the length that the model demands.
pub(crate) fn encode_token(id: &str) -> String {
    let digits: String = id.bytes().map(|byte| format!("{byte:02x}")).collect();
    let length = digits.len().next_multiple_of(16).max(TOKEN_LENGTH_MIN);
    format!("{digits:0<length$}")
}

pub(crate) fn decode_token(token: &str) -> Result<String, ApiError> {
    let invalid = || transfer::next_token(token);
    let byte = |at: usize| u8::from_str_radix(token.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..token.len() / 2).map(|index| byte(2 * index)).collect();
    let bytes = bytes.ok_or_else(invalid)?;
    let id: Vec<u8> = bytes.into_iter().take_while(|byte| *byte != 0).collect();
    String::from_utf8(id).ok().filter(|id| !id.is_empty()).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_the_length_of_the_model() {
        let id = "01700000000000-1a2b3c4d";
        let token = encode_token(id);
        assert_eq!(token.len(), TOKEN_LENGTH_MIN);
        assert_eq!(decode_token(&token).unwrap(), id);
        assert!(decode_token(&"0".repeat(112)).is_err());
    }
}
