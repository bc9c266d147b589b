//! What a request asks to have returned.

use zenobe_engine::error::Error;

use crate::constraints::Violations;
use crate::error::ApiError;
use crate::messages::engine::{Subject, engine_error};
use crate::messages::item;
use crate::operations::enumerations::{
    RETURN_CONSUMED_CAPACITY, RETURN_ITEM_COLLECTION_METRICS, RETURN_VALUES,
    RETURN_VALUES_ON_CONDITION_CHECK_FAILURE, ReturnCapacity, ReturnValues,
};

/// What a write of one item returns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteReturns {
    pub(crate) values: ReturnValues,
    pub(crate) capacity: ReturnCapacity,
    pub(crate) collection_metrics: bool,
    /// Whether to return the item if the condition fails.
    pub(crate) item_on_failure: bool,
}

/// What a write of several items returns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ItemsWriteReturns {
    pub(crate) capacity: ReturnCapacity,
    pub(crate) collection_metrics: bool,
}

impl ItemsWriteReturns {
    pub(crate) fn parse(
        capacity: Option<&str>,
        collection_metrics: Option<&str>,
        violations: &mut Violations,
    ) -> ItemsWriteReturns {
        let capacity = return_capacity(capacity, violations);
        let collection_metrics = return_collection_metrics(collection_metrics, violations);
        ItemsWriteReturns { capacity, collection_metrics }
    }
}

pub(crate) fn return_values(given: Option<&str>, violations: &mut Violations) -> ReturnValues {
    let found = violations.enumeration(given, "returnValues", &RETURN_VALUES);
    found.unwrap_or(ReturnValues::None)
}

pub(crate) fn return_capacity(given: Option<&str>, violations: &mut Violations) -> ReturnCapacity {
    let found = violations.enumeration(given, "returnConsumedCapacity", &RETURN_CONSUMED_CAPACITY);
    found.unwrap_or(ReturnCapacity::None)
}

pub(crate) fn return_collection_metrics(given: Option<&str>, violations: &mut Violations) -> bool {
    let enumeration = &RETURN_ITEM_COLLECTION_METRICS;
    violations.enumeration(given, "returnItemCollectionMetrics", enumeration).unwrap_or(false)
}

pub(crate) fn return_item_on_failure(given: Option<&str>, violations: &mut Violations) -> bool {
    return_item_on_failure_at(given, "returnValuesOnConditionCheckFailure", violations)
}

/// Like [`return_item_on_failure`], for the actions of transactions.
pub(crate) fn return_item_on_failure_at(
    given: Option<&str>,
    path: &str,
    violations: &mut Violations,
) -> bool {
    let enumeration = &RETURN_VALUES_ON_CONDITION_CHECK_FAILURE;
    violations.enumeration(given, path, enumeration).unwrap_or(false)
}

impl WriteReturns {
    /// PutItem and DeleteItem can only return the old item.
    pub(crate) fn check_old_or_none(&self) -> Result<(), ApiError> {
        match self.values {
            ReturnValues::AllOld | ReturnValues::None => Ok(()),
            _ => Err(item::return_values_not_old()),
        }
    }

    /// Words a failed write. A failed condition comes with the item if the request asked for it.
    pub(crate) fn failure(&self, error: Error) -> ApiError {
        match error {
            Error::ConditionFailed { item } => {
                item::condition_failed(item.filter(|_| self.item_on_failure))
            }
            error => engine_error(error, Subject::Items),
        }
    }
}
