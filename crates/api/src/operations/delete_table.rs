//! DeleteTable.

use crate::constraints::TableNameRule;
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::render::write_deleted_table;
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: DeleteTableInput = request(body)?;
    let table = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let deleted = context
        .engine
        .delete_table(&table)
        .await
        .map_err(|error| context.table(&table.name, error))?;
    let now_ms = context.engine.clock().now_ms();
    let mut writer = Writer::new();
    writer.object(|writer| {
        write_deleted_table(writer.name("TableDescription"), &deleted, now_ms);
    });
    Ok(Reply(writer.finish()))
}

shape! {
    struct DeleteTableInput {
        "TableName" => table_name: String,
    }
}
