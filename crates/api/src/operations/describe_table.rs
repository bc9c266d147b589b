//! DescribeTable.

use crate::constraints::TableNameRule;
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::render::{Presentation, write_table};
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: DescribeTableInput = request(body)?;
    let table = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let described = context
        .engine
        .describe_table(&table)
        .await
        .map_err(|error| context.table(&table.name, error))?;
    let presentation = Presentation::described(context.engine.clock().now_ms());
    let mut writer = Writer::new();
    writer.object(|writer| write_table(writer.name("Table"), &described, &presentation));
    Ok(Reply(writer.finish()))
}

shape! {
    struct DescribeTableInput {
        "TableName" => table_name: String,
    }
}
