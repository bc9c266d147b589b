//! Expressions and their placeholders, from request members to bound expressions.
//!
//! The steps are separate because operations put other checks between them. In DynamoDB's order:
//!
//! 1. [`check_not_mixed`], [`check_names_are_used`], [`check_values_are_used`] only check which
//!    parameters are present;
//! 2. [`Placeholders::check`] validates the maps;
//! 3. [`Placeholders::expressions`] starts the binding: update, condition, key condition, filter,
//!    projection, in this order, and finally [`Expressions::finish`].

use std::collections::BTreeMap;

use zenobe_expression::limits::PLACEHOLDER_SIZE_BYTES_MAX;
use zenobe_expression::{
    Binder, Condition, ExpressionKind, KeyCondition, Projection, Update, is_name_placeholder,
    is_value_placeholder,
};
use zenobe_value::{AttributeValue, item_size_bytes};

use crate::error::ApiError;
use crate::json::attribute_value::{NameFault, WireAttributes};
use crate::json::decode::OrderedMap;
use crate::messages::{expression, value};

/// The largest total size of a request's placeholders and what they stand for.
const PLACEHOLDERS_SIZE_BYTES_MAX: usize = 2 << 20;

/// Rejects expressions together with legacy parameters. Each parameter comes with whether the
/// request has it; an empty map counts.
pub(crate) fn check_not_mixed(
    legacy: &[(&str, bool)],
    expressions: &[(ExpressionKind, bool)],
) -> Result<(), ApiError> {
    if legacy.iter().all(|(_, given)| !given) || expressions.iter().all(|(_, given)| !given) {
        return Ok(());
    }
    let legacy: Vec<&str> =
        legacy.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    let expressions: Vec<&str> =
        expressions.iter().filter(|(_, given)| *given).map(|(kind, _)| kind.parameter()).collect();
    Err(expression::mixed(&legacy, &expressions))
}

/// Rejects ExpressionAttributeNames without any expression.
pub(crate) fn check_names_are_used(
    names: Option<&OrderedMap<String>>,
    expressions: &[(ExpressionKind, bool)],
) -> Result<(), ApiError> {
    if names.is_some() && expressions.iter().all(|(_, given)| !given) {
        return Err(expression::names_without_expression());
    }
    Ok(())
}

/// Rejects ExpressionAttributeValues without an expression that may use values. The text lists the
/// operation's expressions in the given order.
pub(crate) fn check_values_are_used(
    values: Option<&WireAttributes>,
    expressions: &[(ExpressionKind, bool)],
) -> Result<(), ApiError> {
    if values.is_some() && expressions.iter().all(|(_, given)| !given) {
        let kinds: Vec<ExpressionKind> = expressions.iter().map(|(kind, _)| *kind).collect();
        return Err(expression::values_without_expression(&kinds));
    }
    Ok(())
}

/// Valid placeholder maps of one request.
#[derive(Debug, Default)]
pub(crate) struct Placeholders {
    pub(crate) names: Option<BTreeMap<String, String>>,
    pub(crate) values: Option<BTreeMap<String, AttributeValue>>,
}

impl Placeholders {
    pub(crate) fn check(
        names: Option<OrderedMap<String>>,
        values: Option<WireAttributes>,
    ) -> Result<Placeholders, ApiError> {
        let names = names.map(checked_names).transpose()?;
        let values = values.map(checked_values).transpose()?;
        let size_bytes =
            names.as_ref().map_or(0, names_size_bytes) + values.as_ref().map_or(0, item_size_bytes);
        if size_bytes > PLACEHOLDERS_SIZE_BYTES_MAX {
            return Err(expression::placeholders_too_large());
        }
        Ok(Placeholders { names, values })
    }

    pub(crate) fn expressions(&self) -> Expressions<'_> {
        Expressions(Binder::new(self.names.as_ref(), self.values.as_ref()))
    }
}

/// The expressions of one request during binding. Absent texts bind to nothing.
pub(crate) struct Expressions<'a>(Binder<'a>);

impl Expressions<'_> {
    pub(crate) fn update(&mut self, text: Option<&str>) -> Result<Option<Update>, ApiError> {
        let bound = text.map(|text| self.0.update(text)).transpose();
        bound.map_err(|error| expression::expression_error(&error))
    }

    pub(crate) fn condition(&mut self, text: Option<&str>) -> Result<Option<Condition>, ApiError> {
        self.condition_of(ExpressionKind::Condition, text)
    }

    /// Conditions that no query can use are an error inside the result: DynamoDB reports it after
    /// all expressions are bound.
    pub(crate) fn key_condition(
        &mut self,
        text: Option<&str>,
    ) -> Result<Option<Result<Vec<KeyCondition>, ApiError>>, ApiError> {
        let Some(text) = text else {
            return Ok(None);
        };
        match self.0.key_condition(text) {
            Ok(conditions) => Ok(Some(Ok(conditions))),
            Err(error) if expression::is_restriction(&error.fault) => {
                Ok(Some(Err(expression::expression_error(&error))))
            }
            Err(error) => Err(expression::expression_error(&error)),
        }
    }

    pub(crate) fn filter(&mut self, text: Option<&str>) -> Result<Option<Condition>, ApiError> {
        self.condition_of(ExpressionKind::Filter, text)
    }

    /// The condition of a vector search.
    pub(crate) fn search_condition(
        &mut self,
        text: Option<&str>,
    ) -> Result<Option<Condition>, ApiError> {
        self.condition_of(ExpressionKind::SearchCondition, text)
    }

    pub(crate) fn projection(
        &mut self,
        text: Option<&str>,
    ) -> Result<Option<Projection>, ApiError> {
        let bound = text.map(|text| self.0.projection(text)).transpose();
        bound.map_err(|error| expression::expression_error(&error))
    }

    /// Rejects placeholders that no expression has used.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        self.0.finish().map_err(|unused| expression::unused(&unused))
    }

    fn condition_of(
        &mut self,
        kind: ExpressionKind,
        text: Option<&str>,
    ) -> Result<Option<Condition>, ApiError> {
        let bound = text.map(|text| self.0.condition(kind, text)).transpose();
        bound.map_err(|error| expression::expression_error(&error))
    }
}

fn checked_names(names: OrderedMap<String>) -> Result<BTreeMap<String, String>, ApiError> {
    const PARAMETER: &str = "ExpressionAttributeNames";
    if names.0.is_empty() {
        return Err(expression::empty_placeholders(PARAMETER));
    }
    for (key, _) in &names.0 {
        if key.len() > PLACEHOLDER_SIZE_BYTES_MAX || !is_name_placeholder(key) {
            return Err(expression::invalid_placeholder(PARAMETER, key));
        }
    }
    for (key, name) in &names.0 {
        match NameFault::of(name) {
            None => {}
            Some(NameFault::Empty) => return Err(expression::empty_name(key)),
            Some(NameFault::TooLong) => return Err(value::name_fault(NameFault::TooLong)),
        }
    }
    Ok(names.0.into_iter().collect())
}

fn checked_values(values: WireAttributes) -> Result<BTreeMap<String, AttributeValue>, ApiError> {
    const PARAMETER: &str = "ExpressionAttributeValues";
    if values.0.is_empty() {
        return Err(expression::empty_placeholders(PARAMETER));
    }
    for (key, _) in &values.0 {
        if key.len() > PLACEHOLDER_SIZE_BYTES_MAX || !is_value_placeholder(key) {
            return Err(expression::invalid_placeholder(PARAMETER, key));
        }
    }
    let mut checked = BTreeMap::new();
    for (key, value) in values.0 {
        let value = value.map_err(|fault| expression::invalid_value(&key, &fault))?;
        checked.insert(key, value);
    }
    Ok(checked)
}

fn names_size_bytes(names: &BTreeMap<String, String>) -> usize {
    names.iter().map(|(key, name)| key.len() + name.len()).sum()
}
