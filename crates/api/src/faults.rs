//! Failures that a test asks for, worded as DynamoDB words real ones.

use zenobe_engine::schema::BillingMode;

use crate::error::{ApiError, CancellationEntry};
use crate::messages::{engine, request, table, throttling};
use crate::{Operation, Response};

/// A failure that the database itself did not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InjectedFault<'a> {
    /// Too many requests for a table or one of its indexes; without a billing mode, too many changes
    /// of tables.
    Throttled {
        billing_mode: Option<BillingMode>,
        index: bool,
    },
    /// Another transaction is at work on the same item: that of the action at this position, if the
    /// request is a transaction with several.
    TransactionConflict {
        actions: usize,
        position: usize,
    },
    InternalServerError,
    ServiceUnavailable,
    /// The table can't be used yet, or not any more.
    TableNotFound,
    /// The table exists already.
    TableExists {
        table: &'a str,
    },
    /// The table can't be changed now.
    TableInUse {
        table: &'a str,
        status: TransientStatus,
    },
}

/// A status that a table leaves by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransientStatus {
    Creating,
    Updating,
    Deleting,
}

impl TransientStatus {
    pub fn name(self) -> &'static str {
        match self {
            TransientStatus::Creating => "CREATING",
            TransientStatus::Updating => "UPDATING",
            TransientStatus::Deleting => "DELETING",
        }
    }
}

impl InjectedFault<'_> {
    pub fn into_response(self, operation: Operation) -> Response {
        self.error(operation).into_response()
    }

    fn error(self, operation: Operation) -> ApiError {
        match self {
            InjectedFault::Throttled { billing_mode, index } => throttled(billing_mode, index),
            InjectedFault::TransactionConflict { actions, position } => {
                conflict(operation, actions, position)
            }
            InjectedFault::InternalServerError => request::internal_server_error(),
            InjectedFault::ServiceUnavailable => request::service_unavailable(),
            InjectedFault::TableNotFound => table::requested_resource_not_found(),
            InjectedFault::TableExists { table: name } => table::table_exists(name),
            InjectedFault::TableInUse { table: name, status } => match status {
                TransientStatus::Creating => table::table_being_created(name),
                TransientStatus::Updating => table::table_being_updated(name),
                TransientStatus::Deleting => table::table_being_deleted(name),
            },
        }
    }
}

/// The one place that words injected throttling.
fn throttled(billing_mode: Option<BillingMode>, index: bool) -> ApiError {
    match (billing_mode, index) {
        (None, _) => throttling::control_plane(),
        (Some(BillingMode::Provisioned), false) => throttling::table_provisioned(),
        (Some(BillingMode::Provisioned), true) => throttling::index_provisioned(),
        (Some(BillingMode::PayPerRequest), false) => throttling::table_on_demand(),
        (Some(BillingMode::PayPerRequest), true) => throttling::index_on_demand(),
    }
}

fn conflict(operation: Operation, actions: usize, position: usize) -> ApiError {
    let is_transaction = matches!(
        operation,
        Operation::TransactWriteItems | Operation::TransactGetItems | Operation::ExecuteTransaction
    );
    let ongoing = engine::transaction_ongoing();
    if !is_transaction {
        return ongoing;
    }
    let entry = |at: usize| match at == position {
        true => CancellationEntry::new("TransactionConflict", &ongoing),
        false => CancellationEntry::none(),
    };
    engine::cancelled_by((0..actions).map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_names_its_action() {
        let fault = InjectedFault::TransactionConflict { actions: 3, position: 1 };
        let response = fault.clone().into_response(Operation::TransactWriteItems);
        let body = String::from_utf8(response.body.to_vec()).unwrap();
        assert_eq!(response.error, Some("TransactionCanceledException"));
        assert!(body.contains("[None, TransactionConflict, None]"), "{body}");
        assert!(body.contains("Transaction is ongoing for the item"), "{body}");
        let single = fault.into_response(Operation::PutItem);
        assert_eq!((single.status, single.error), (400, Some("TransactionConflictException")));
    }

    #[test]
    fn throttling_is_worded_by_the_billing_mode() {
        let name = |billing_mode, index| {
            let fault = InjectedFault::Throttled { billing_mode, index };
            fault.into_response(Operation::PutItem).error.unwrap()
        };
        let provisioned = Some(BillingMode::Provisioned);
        assert_eq!(name(provisioned, false), "ProvisionedThroughputExceededException");
        assert_eq!(name(provisioned, true), "ProvisionedThroughputExceededException");
        assert_eq!(name(Some(BillingMode::PayPerRequest), false), "ThrottlingException");
        assert_eq!(name(None, false), "ThrottlingException");
    }
}
