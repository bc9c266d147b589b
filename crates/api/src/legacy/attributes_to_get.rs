//! AttributesToGet: names of top-level attributes.

use zenobe_expression::Projection;
use zenobe_value::Path;

use crate::constraints::{Violations, printed_list};
use crate::error::ApiError;
use crate::messages::expression;
use crate::parameters::items;

const NAMES_MAX: usize = 255;

/// The constraint on the list's length.
pub(crate) fn check_length(names: Option<&[String]>, path: &str, violations: &mut Violations) {
    if let Some(names) = names {
        violations.count(names.len(), path, 1, NAMES_MAX, || printed_list(names, String::clone));
    }
}

pub(crate) fn check_distinct(names: Option<&[String]>) -> Result<(), ApiError> {
    let names = names.unwrap_or_default();
    names.iter().try_for_each(|name| items::check_name(name))?;
    let is_repeated = |(position, name): &(usize, &String)| names[..*position].contains(*name);
    match names.iter().enumerate().find(is_repeated) {
        Some((_, name)) => Err(expression::duplicate_attribute_name(name)),
        None => Ok(()),
    }
}

pub(crate) fn projection(names: Vec<String>) -> Projection {
    Projection::new(names.into_iter().map(Path::top_level).collect())
}
