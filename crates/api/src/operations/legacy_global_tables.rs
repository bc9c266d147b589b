//! The global-table operations of 2017, which DynamoDB itself no longer serves: creation fails, and
//! so no such table exists.

use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages;
use crate::{Context, Operation, Reply};

pub(crate) fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: GlobalTableInput = request(body)?;
    if context.operation == Operation::ListGlobalTables {
        return Ok(empty_list());
    }
    let mut violations = Violations::new();
    if let Some(name) = &input.global_table_name {
        // The length has DescribeTable's text, and comes before the pattern.
        if !(3..=255).contains(&name.chars().count()) {
            return Err(messages::request::global_table_name_length());
        }
        violations.name(name, "globalTableName");
    }
    let name = violations.required(input.global_table_name, "globalTableName");
    violations.finish()?;
    Err(match context.operation {
        Operation::CreateGlobalTable => messages::request::legacy_global_tables(),
        _ => messages::request::global_table_not_found(&name),
    })
}

shape! {
    struct GlobalTableInput {
        "GlobalTableName" => global_table_name: String,
    }
}

fn empty_list() -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| writer.name("GlobalTables").array::<()>([], |_, ()| {}));
    Reply(writer.finish())
}
