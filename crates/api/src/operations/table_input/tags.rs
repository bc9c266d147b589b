//! Tags, and the ARNs of tagged resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use zenobe_engine::command::TableName;

use super::shapes::Tag;
use crate::Context;
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::messages::{request, tag};

const RESOURCE_ARN_LENGTH_MAX: usize = 1_283;
const TABLE_NAME_LENGTH_MIN: usize = 3;
const TAGS_MAX: usize = 50;
const KEY_LENGTH_MAX: usize = 128;
const VALUE_LENGTH_MAX: usize = 256;

/// Tags to set. All are valid, or the request fails.
pub(crate) fn tags(tags: Vec<Tag>) -> Result<BTreeMap<String, String>, ApiError> {
    let mut checked = BTreeMap::new();
    for Tag { key, value } in tags {
        let Some(key) = key else {
            return Err(tag::invalid_key("null"));
        };
        check_key(&key)?;
        let Some(value) = value else {
            return Err(tag::invalid_value("null"));
        };
        if value.chars().count() > VALUE_LENGTH_MAX || !value.chars().all(is_tag_character) {
            return Err(tag::invalid_value(&value));
        }
        if checked.contains_key(&key) {
            return Err(tag::duplicate_key(&key));
        }
        checked.insert(key, value);
    }
    if checked.len() > TAGS_MAX {
        return Err(tag::too_many());
    }
    Ok(checked)
}

/// Keys of tags to remove.
pub(crate) fn tag_keys(keys: Vec<String>) -> Result<Vec<String>, ApiError> {
    if keys.is_empty() {
        return Err(tag::no_tag_keys());
    }
    for key in &keys {
        check_key(key)?;
    }
    if keys.len() > TAGS_MAX {
        return Err(tag::too_many());
    }
    Ok(keys)
}

/// The constraints of a `ResourceArn` member. Its presence is checked before all constraints.
pub(crate) fn resource_arn(
    arn: Option<String>,
    violations: &mut Violations,
) -> Result<String, ApiError> {
    let arn = arn.ok_or_else(tag::arn_missing)?;
    violations.length(&arn, "resourceArn", 1, RESOURCE_ARN_LENGTH_MAX);
    Ok(arn)
}

/// The table that a table's or stream's ARN belongs to.
pub(crate) fn tagged_table(context: &Context<'_>, arn: &str) -> Result<TableName, ApiError> {
    if !arn.starts_with("arn:") {
        return Err(tag::arn_prefix(arn));
    }
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let [_, _, "dynamodb", region, account, resource] = parts[..] else {
        return Err(tag::not_a_dynamodb_arn(arn));
    };
    let elements: Vec<&str> = resource.split('/').collect();
    let name = match elements[..] {
        ["table", name] | ["table", name, "stream", _] => name,
        ["table", _, "index", _] => return Err(tag::not_a_table_or_stream(arn)),
        _ => return Err(tag::not_a_dynamodb_arn(arn)),
    };
    if region != context.namespace.region {
        return Err(tag::invalid_resource(arn));
    }
    if account != context.namespace.account {
        return Err(request::other_account());
    }
    if name.chars().count() < TABLE_NAME_LENGTH_MIN {
        return Err(tag::invalid_resource(arn));
    }
    Ok(TableName { namespace: Arc::clone(context.namespace), name: name.to_owned() })
}

fn check_key(key: &str) -> Result<(), ApiError> {
    let length = key.chars().count();
    if !(1..=KEY_LENGTH_MAX).contains(&length) || !key.chars().all(is_tag_character) {
        return Err(tag::invalid_key(key));
    }
    if key.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case("aws:")) {
        return Err(tag::reserved_key(key));
    }
    Ok(())
}

fn is_tag_character(character: char) -> bool {
    character.is_alphanumeric() || character.is_whitespace() || "+-=._:/@".contains(character)
}
