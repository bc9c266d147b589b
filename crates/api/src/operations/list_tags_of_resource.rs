//! ListTagsOfResource. It returns all tags at once: there are never more than fifty.

use std::collections::BTreeMap;

use super::table_input::tags::{resource_arn, tagged_table};
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::engine::{Subject, engine_error};
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: ListTagsOfResourceInput = request(body)?;
    let mut violations = Violations::new();
    let arn = resource_arn(input.resource_arn, &mut violations)?;
    violations.finish()?;
    let table = tagged_table(context, &arn)?;
    let tags = context
        .engine
        .list_tags(&table)
        .await
        .map_err(|error| engine_error(error, Subject::Resource { arn: &arn }))?;
    Ok(render(&tags))
}

shape! {
    struct ListTagsOfResourceInput {
        "ResourceArn" => resource_arn: String,
        "NextToken" => next_token: String,
    }
}

fn render(tags: &BTreeMap<String, String>) -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("Tags").array(tags, |writer, (key, value)| {
            writer.object(|writer| {
                writer.name("Key").string(key);
                writer.name("Value").string(value);
            });
        });
    });
    Reply(writer.finish())
}
