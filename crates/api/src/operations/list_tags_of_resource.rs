//! ListTagsOfResource. A page holds ten tags; the token is the last page's last key.

use std::collections::BTreeMap;
use std::ops::Bound;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::table_input::tags::{resource_arn, tagged_table};
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::engine::{Subject, engine_error};
use crate::{Context, Reply};

const PAGE_TAGS_MAX: usize = 10;

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: ListTagsOfResourceInput = request(body)?;
    let mut violations = Violations::new();
    let arn = resource_arn(input.resource_arn, &mut violations);
    violations.finish()?;
    let table = tagged_table(context, &arn)?;
    let tags = context
        .engine
        .list_tags(&table)
        .await
        .map_err(|error| engine_error(error, Subject::Resource { arn: &arn }))?;
    Ok(render(&tags, input.next_token.as_deref().and_then(key_in_token)))
}

shape! {
    struct ListTagsOfResourceInput {
        "ResourceArn" => resource_arn: String,
        "NextToken" => next_token: String,
    }
}

/// An invalid token stands for the first page.
fn key_in_token(token: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(token).ok()?).ok()
}

fn render(tags: &BTreeMap<String, String>, after: Option<String>) -> Reply {
    let start = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut rest = tags.range((start, Bound::Unbounded)).peekable();
    let page: Vec<(&String, &String)> = rest.by_ref().take(PAGE_TAGS_MAX).collect();
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("Tags").array(&page, |writer, (key, value)| {
            writer.object(|writer| {
                writer.name("Key").string(key);
                writer.name("Value").string(value);
            });
        });
        if let (Some((last, _)), Some(_)) = (page.last(), rest.peek()) {
            writer.name("NextToken").base64(last.as_bytes());
        }
    });
    Reply(writer.finish())
}
