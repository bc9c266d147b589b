//! DescribeTimeToLive.

use crate::constraints::TableNameRule;
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: DescribeTimeToLiveInput = request(body)?;
    let table = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let attribute = context
        .engine
        .describe_time_to_live(&table)
        .await
        .map_err(|error| context.table(&table.name, error))?;
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("TimeToLiveDescription").object(|writer| {
            let status = if attribute.is_some() { "ENABLED" } else { "DISABLED" };
            writer.name("TimeToLiveStatus").string(status);
            if let Some(attribute) = &attribute {
                writer.name("AttributeName").string(attribute);
            }
        });
    });
    Ok(Reply(writer.finish()))
}

shape! {
    struct DescribeTimeToLiveInput {
        "TableName" => table_name: String,
    }
}
