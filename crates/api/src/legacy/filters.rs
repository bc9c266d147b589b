//! QueryFilter and ScanFilter.

use zenobe_expression::Condition;

use super::conditions::{
    ConditionalOperator, UncheckedCondition, check_conditional_operator, checked, joined,
};
use crate::error::ApiError;

/// The condition, after all checks. `None` for an empty map.
pub(crate) fn condition(
    filter: Option<Vec<UncheckedCondition>>,
    operator: Option<ConditionalOperator>,
) -> Result<Option<Condition>, ApiError> {
    let conditions = checked(filter.unwrap_or_default())?;
    check_conditional_operator(operator, conditions.len())?;
    Ok(joined(conditions, operator))
}
