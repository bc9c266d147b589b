//! UntagResource.

use super::table_input::tags::{resource_arn, tag_keys, tagged_table};
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::decode::{request, shape};
use crate::messages::engine::{Subject, engine_error};
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: UntagResourceInput = request(body)?;
    let mut violations = Violations::new();
    let arn = resource_arn(input.resource_arn, &mut violations)?;
    let keys = violations.required(input.tag_keys, "tagKeys");
    violations.finish()?;
    let table = tagged_table(context, &arn)?;
    context
        .engine
        .untag_resource(&table, &tag_keys(keys)?)
        .await
        .map_err(|error| engine_error(error, Subject::Resource { arn: &arn }))?;
    // The operation has no output shape, so the body is empty, without braces.
    Ok(Reply(Vec::new()))
}

shape! {
    struct UntagResourceInput {
        "ResourceArn" => resource_arn: String,
        "TagKeys" => tag_keys: Vec<String>,
    }
}
