//! Texts about Contributor Insights.

use zenobe_engine::error::InsightsError;

use super::texts;
use crate::error::ApiError;

/// The prefix for faults of a table's or an index's state.
const STATE: &str = "Table or Index is not in a valid state to update Key Access Insights: ";

/// The `FailureException` of insights that found too many rules.
pub(crate) const RULE_LIMIT_NAME: &str = "LimitExceededException";
pub(crate) const RULE_LIMIT_DESCRIPTION: &str = "Amazon CloudWatch Contributor Insights rule limit \
    reached. Please disable Contributor Insights for other tables/indexes OR disable other \
    CloudWatch Contributor Insights rules before retrying.";

pub(crate) fn insights_error(error: &InsightsError) -> ApiError {
    match error {
        InsightsError::IndexNotFound { table, index } => index_not_found(index, table),
        InsightsError::TableNotActive => not_active("TableStatus"),
        InsightsError::IndexNotActive => not_active("IndexStatus"),
    }
}

texts! {
    Validation, STATE => {
        not_active(status: &str) "{status} must be ACTIVE to enable ContributorInsights.";
    }
    ResourceNotFound, "Requested resource not found: " => {
        index_not_found(index: &str, table: &str) "Index: {index} not found for table: {table}";
    }
}
