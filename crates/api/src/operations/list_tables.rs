//! ListTables.

use zenobe_engine::command::TablePage;

use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::{Context, Reply};

const LIMIT_MAX: i64 = 100;

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: ListTablesInput = request(body)?;
    let limit = check(&input)?;
    let start = input.exclusive_start_table_name.as_deref();
    let page = context
        .engine
        .list_tables(context.namespace, start, limit)
        .await
        .map_err(|error| context.table("", error))?;
    Ok(render(&page))
}

shape! {
    struct ListTablesInput {
        "ExclusiveStartTableName" => exclusive_start_table_name: String,
        "Limit" => limit: i32,
    }
}

fn check(input: &ListTablesInput) -> Result<usize, ApiError> {
    let mut violations = Violations::new();
    if let Some(name) = &input.exclusive_start_table_name {
        violations.name(name, "exclusiveStartTableName");
    }
    let limit = input.limit.map_or(LIMIT_MAX, i64::from);
    violations.range(limit, "limit", 1, LIMIT_MAX);
    violations.finish()?;
    Ok(usize::try_from(limit).unwrap_or_default())
}

fn render(page: &TablePage) -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("TableNames").array(&page.names, |writer, name| writer.string(name));
        if let Some(last) = page.names.last().filter(|_| page.more) {
            writer.name("LastEvaluatedTableName").string(last);
        }
    });
    Reply(writer.finish())
}
