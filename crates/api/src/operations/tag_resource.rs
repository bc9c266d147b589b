//! TagResource.

use super::table_input::shapes::Tag;
use super::table_input::tags::{resource_arn, tagged_table, tags};
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::decode::{request, shape};
use crate::messages::engine::{Subject, engine_error};
use crate::messages::tag;
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: TagResourceInput = request(body)?;
    let mut violations = Violations::new();
    let arn = resource_arn(input.resource_arn, &mut violations)?;
    let given = violations.required(input.tags, "tags");
    violations.finish()?;
    let table = tagged_table(context, &arn)?;
    if given.is_empty() {
        return Err(tag::no_tags());
    }
    context
        .engine
        .tag_resource(&table, tags(given)?)
        .await
        .map_err(|error| engine_error(error, Subject::Resource { arn: &arn }))?;
    // The operation has no output shape, so the body is empty, without braces.
    Ok(Reply(Vec::new()))
}

shape! {
    struct TagResourceInput {
        "ResourceArn" => resource_arn: String,
        "Tags" => tags: Vec<Tag>,
    }
}
