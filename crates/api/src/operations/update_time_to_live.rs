//! UpdateTimeToLive.

use zenobe_engine::command::{TableName, UpdateTimeToLive};

use crate::constraints::{TableNameRule, Violations};
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: UpdateTimeToLiveInput = request(body)?;
    let table = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let name = table.name.clone();
    let command = lower(table, input.time_to_live_specification)?;
    let reply = render(&command);
    context
        .engine
        .update_time_to_live(command)
        .await
        .map_err(|error| context.table(&name, error))?;
    Ok(reply)
}

shape! {
    struct UpdateTimeToLiveInput {
        "TableName" => table_name: String,
        "TimeToLiveSpecification" => time_to_live_specification: TimeToLiveSpecification,
    }

    struct TimeToLiveSpecification {
        "Enabled" => enabled: bool,
        "AttributeName" => attribute_name: String,
    }
}

fn lower(
    table: TableName,
    specification: Option<TimeToLiveSpecification>,
) -> Result<UpdateTimeToLive, ApiError> {
    let mut violations = Violations::new();
    let given = specification.is_some();
    let specification = violations.required(specification, "timeToLiveSpecification");
    let (mut enabled, mut attribute) = (false, String::new());
    if given {
        enabled = violations.required(specification.enabled, "timeToLiveSpecification.enabled");
        let path = "timeToLiveSpecification.attributeName";
        if let Some(name) = &specification.attribute_name {
            violations.length(name, path, 1, 255);
        }
        attribute = violations.required(specification.attribute_name, path);
    }
    violations.finish()?;
    Ok(UpdateTimeToLive { table, enabled, attribute })
}

/// The response repeats the specification.
fn render(command: &UpdateTimeToLive) -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("TimeToLiveSpecification").object(|writer| {
            writer.name("Enabled").bool(command.enabled);
            writer.name("AttributeName").string(&command.attribute);
        });
    });
    Reply(writer.finish())
}
