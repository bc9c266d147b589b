//! The global-table operations of 2017, which DynamoDB itself no longer serves: creation fails, and
//! so no such table exists.

use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages;
use crate::{Context, Reply};

pub(crate) async fn list(_: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let _: GlobalTableInput = request(body)?;
    let mut writer = Writer::new();
    writer.object(|writer| writer.name("GlobalTables").array::<()>([], |_, ()| {}));
    Ok(Reply(writer.finish()))
}

pub(crate) async fn create(_: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    checked_name(body)?;
    Err(messages::request::legacy_global_tables())
}

/// Describes or updates a table that can't exist.
pub(crate) async fn find(_: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let name = checked_name(body)?;
    Err(messages::request::global_table_not_found(&name))
}

shape! {
    struct GlobalTableInput {
        "GlobalTableName" => global_table_name: String,
    }
}

fn checked_name(body: &[u8]) -> Result<String, ApiError> {
    let input: GlobalTableInput = request(body)?;
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
    Ok(name)
}
