//! Which items an export has, and what of them: the FilterSpecification of a request, as it is stored.

use std::collections::BTreeMap;

use zenobe_expression::{Condition, ExpressionKind, KeyCondition, Projection};
use zenobe_value::{AttributeValue, Attributes};

use crate::error::ApiError;
use crate::json::attribute_value::WireAttributes;
use crate::json::decode::{OrderedMap, shape};
use crate::json::{Writer, write_attributes};
use crate::messages::export;
use crate::parameters::expressions::{Placeholders, check_names_are_used, check_values_are_used};

shape! {
    struct FilterSpecification {
        "FilterExpression" => filter_expression: String,
        "ProjectionExpression" => projection_expression: String,
        "KeyConditionExpression" => key_condition_expression: String,
        "ExpressionAttributeNames" => expression_attribute_names: OrderedMap<String>,
        "ExpressionAttributeValues" => expression_attribute_values: WireAttributes,
    }
}

/// A specification whose placeholders are valid.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Filter {
    expressions: BTreeMap<&'static str, String>,
    names: Option<BTreeMap<String, String>>,
    values: Option<Attributes>,
}

/// What a specification means.
#[derive(Debug, Default)]
pub(crate) struct BoundFilter {
    pub(crate) key_conditions: Option<Vec<KeyCondition>>,
    pub(crate) filter: Option<Condition>,
    pub(crate) projection: Option<Projection>,
}

const KEY_CONDITION: &str = "KeyConditionExpression";
const FILTER: &str = "FilterExpression";
const PROJECTION: &str = "ProjectionExpression";
const EXPRESSIONS: [&str; 3] = [FILTER, PROJECTION, KEY_CONDITION];
const NAMES: &str = "ExpressionAttributeNames";
const VALUES: &str = "ExpressionAttributeValues";

impl Filter {
    pub(crate) fn check(given: FilterSpecification) -> Result<Filter, ApiError> {
        let has_key_condition =
            (ExpressionKind::KeyCondition, given.key_condition_expression.is_some());
        let has_filter = (ExpressionKind::Filter, given.filter_expression.is_some());
        let has_projection = (ExpressionKind::Projection, given.projection_expression.is_some());
        let (names, values) = (given.expression_attribute_names, given.expression_attribute_values);
        let expressions = [has_projection, has_filter, has_key_condition];
        if expressions.iter().all(|(_, given)| !given) && names.is_none() && values.is_none() {
            return Err(export::empty_filter());
        }
        check_names_are_used(names.as_ref(), &expressions)?;
        check_values_are_used(values.as_ref(), &[has_filter, has_key_condition])?;
        let Placeholders { names, values } = Placeholders::check(names, values)?;
        let expressions = [
            (FILTER, given.filter_expression),
            (PROJECTION, given.projection_expression),
            (KEY_CONDITION, given.key_condition_expression),
        ];
        let expressions = expressions.into_iter().filter_map(|(name, text)| Some((name, text?)));
        Ok(Filter { expressions: expressions.collect(), names, values })
    }

    pub(crate) fn bind(&self) -> Result<BoundFilter, ApiError> {
        let text = |name: &str| self.expressions.get(name).map(String::as_str);
        let placeholders = Placeholders { names: self.names.clone(), values: self.values.clone() };
        let mut expressions = placeholders.expressions();
        let key_conditions = expressions.key_condition(text(KEY_CONDITION))?;
        let filter = expressions.filter(text(FILTER))?;
        let projection = expressions.projection(text(PROJECTION))?;
        expressions.finish()?;
        Ok(BoundFilter { key_conditions: key_conditions.transpose()?, filter, projection })
    }

    pub(crate) fn encode(&self) -> Attributes {
        let text = |text: &String| AttributeValue::S(text.clone());
        let expressions = self.expressions.iter();
        let mut row: Attributes =
            expressions.map(|(name, expression)| ((*name).to_owned(), text(expression))).collect();
        if let Some(names) = &self.names {
            let names = names.iter().map(|(placeholder, name)| (placeholder.clone(), text(name)));
            row.insert(NAMES.to_owned(), AttributeValue::M(names.collect()));
        }
        if let Some(values) = &self.values {
            row.insert(VALUES.to_owned(), AttributeValue::M(values.clone()));
        }
        row
    }

    /// `None` if the row is damaged.
    pub(crate) fn decode(row: &Attributes) -> Option<Filter> {
        let mut filter = Filter::default();
        for name in EXPRESSIONS {
            match row.get(name) {
                None => {}
                Some(AttributeValue::S(text)) => {
                    filter.expressions.insert(name, text.clone());
                }
                Some(_) => return None,
            }
        }
        if let Some(AttributeValue::M(names)) = row.get(NAMES) {
            let name = |(placeholder, name): (&String, &AttributeValue)| match name {
                AttributeValue::S(name) => Some((placeholder.clone(), name.clone())),
                _ => None,
            };
            filter.names = Some(names.iter().map(name).collect::<Option<_>>()?);
        }
        if let Some(AttributeValue::M(values)) = row.get(VALUES) {
            filter.values = Some(values.clone());
        }
        Some(filter)
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.object(|writer| {
            for (name, text) in &self.expressions {
                writer.name(name).string(text);
            }
            if let Some(names) = &self.names {
                writer.name(NAMES).object(|writer| {
                    for (placeholder, name) in names {
                        writer.name(placeholder).string(name);
                    }
                });
            }
            if let Some(values) = &self.values {
                write_attributes(writer.name(VALUES), values);
            }
        });
    }
}
