//! How requests name tables: by name or by ARN. The rules differ between families of operations.

use std::sync::Arc;

use zenobe_engine::command::TableName;
use zenobe_engine::schema::Namespace;

use super::{NAME_PATTERN, Violations};
use crate::error::ApiError;
use crate::messages::constraint::Constraint;
use crate::messages::request;

const NAME_LENGTH_MIN: usize = 3;
const NAME_LENGTH_MAX: usize = 255;

/// Which family's rules (and texts) apply to a table name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableNameRule {
    /// Item operations, which report a bad name together with their other constraints.
    Item,
    /// CreateTable, UpdateTable and other operations on tables. A bad name is reported alone.
    Settings,
}

/// Resolves the `TableName` member. For an item operation, [`Violations::table_name`] has checked
/// it before.
pub(crate) fn table_name(
    given: Option<&str>,
    rule: TableNameRule,
    namespace: &Arc<Namespace>,
) -> Result<TableName, ApiError> {
    let Some(given) = given else {
        return Err(missing(rule));
    };
    let name = match given.strip_prefix("arn:") {
        Some(_) => name_in_arn(given, namespace)?,
        None => given,
    };
    check(name)?;
    Ok(TableName { namespace: Arc::clone(namespace), name: name.to_owned() })
}

/// Whether a table may have this name.
pub fn is_table_name(name: &str) -> bool {
    (NAME_LENGTH_MIN..=NAME_LENGTH_MAX).contains(&name.chars().count())
        && name.chars().all(is_name_character)
}

impl Violations {
    /// Checks the `TableName` of an item operation, together with its other constraints.
    /// [`table_name`] resolves it later.
    pub(crate) fn table_name(&mut self, given: Option<&str>) {
        self.nested_table_name(given, "tableName");
    }

    /// Checks a `TableName` further inside a request.
    pub(crate) fn nested_table_name(&mut self, given: Option<&str>, path: &str) {
        match given {
            None => self.add(None, path, Constraint::NotNull),
            Some(given) if given.starts_with("arn:") => {}
            Some("") => self.add(Some(""), path, Constraint::LengthMin(1)),
            Some(given) => self.name(given, path),
        }
    }

    /// Checks the table names that are keys of `requestItems`. `print` is called only if one is
    /// bad.
    pub(crate) fn table_names_as_keys<'n>(
        &mut self,
        mut names: impl Iterator<Item = &'n str>,
        print: impl FnOnce() -> String,
    ) {
        // An ARN is checked later.
        if !names.all(|name| name.starts_with("arn:") || is_table_name(name)) {
            let constraint = Constraint::MapKeys {
                min: NAME_LENGTH_MIN,
                max: NAME_LENGTH_MAX,
                pattern: NAME_PATTERN,
            };
            self.add(Some(&print()), "requestItems", constraint);
        }
    }
}

/// Whether the names of tables and indexes may have this character.
pub fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-')
}

fn missing(rule: TableNameRule) -> ApiError {
    if rule != TableNameRule::Item {
        return request::table_name_required();
    }
    let mut violations = Violations::new();
    violations.add(None, "tableName", Constraint::NotNull);
    violations.finish().err().unwrap_or_else(request::table_name_required)
}

fn check(name: &str) -> Result<(), ApiError> {
    let mut violations = Violations::new();
    if !name.chars().all(is_name_character) {
        violations.add(Some(name), "tableName", Constraint::Pattern(NAME_PATTERN));
    }
    violations.length(name, "tableName", NAME_LENGTH_MIN, NAME_LENGTH_MAX);
    violations.finish()
}

/// The table's name in `arn:aws:dynamodb:<region>:<account>:table/<name>`.
fn name_in_arn<'a>(arn: &'a str, namespace: &Namespace) -> Result<&'a str, ApiError> {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let [_, partition, service, region, account, resource] = parts[..] else {
        return Err(request::arn_format(arn));
    };
    if partition != "aws" {
        return Err(request::arn_partition(arn));
    }
    if service != "dynamodb" {
        return Err(request::arn_format(arn));
    }
    if region != namespace.region {
        return Err(request::arn_region(arn));
    }
    let Some((resource_type, name)) = resource.split_once('/') else {
        return Err(request::arn_format(arn));
    };
    if resource_type != "table" || name.contains('/') {
        return Err(request::arn_resource_type(arn));
    }
    if account != namespace.account {
        return Err(request::other_account());
    }
    Ok(name)
}
