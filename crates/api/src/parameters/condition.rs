//! The condition of a put, a delete or a check.

use zenobe_expression::{Condition, ExpressionKind};

use super::expressions::{
    Placeholders, check_names_are_used, check_not_mixed, check_values_are_used,
};
use crate::error::ApiError;
use crate::json::attribute_value::WireAttributes;
use crate::json::decode::OrderedMap;
use crate::legacy::conditions::ConditionalOperator;
use crate::legacy::expected::{self, Expected};

/// The parameters of a condition, in either dialect.
#[derive(Debug, Default)]
pub(crate) struct ConditionParameters {
    pub(crate) expression: Option<String>,
    pub(crate) names: Option<OrderedMap<String>>,
    pub(crate) values: Option<WireAttributes>,
    pub(crate) expected: Option<Expected>,
    pub(crate) conditional_operator: Option<ConditionalOperator>,
}

impl ConditionParameters {
    /// Rejects parameters that can't be combined. `bind` checks their contents later.
    pub(crate) fn check_combination(&self) -> Result<(), ApiError> {
        let expressions = [(ExpressionKind::Condition, self.expression.is_some())];
        check_not_mixed(&[("Expected", self.expected.is_some())], &expressions)?;
        check_names_are_used(self.names.as_ref(), &expressions)?;
        check_values_are_used(self.values.as_ref(), &expressions)
    }

    pub(crate) fn bind(self) -> Result<Option<Condition>, ApiError> {
        if self.is_absent() {
            return Ok(None);
        }
        let expected = expected::condition(self.expected, self.conditional_operator)?;
        let placeholders = Placeholders::check(self.names, self.values)?;
        let mut expressions = placeholders.expressions();
        let condition = expressions.condition(self.expression.as_deref())?;
        expressions.finish()?;
        Ok(condition.or(expected))
    }

    /// The common case, in which there is nothing to check.
    fn is_absent(&self) -> bool {
        let ConditionParameters { expression, names, values, expected, conditional_operator } =
            self;
        expression.is_none()
            && names.is_none()
            && values.is_none()
            && expected.is_none()
            && conditional_operator.is_none()
    }
}
