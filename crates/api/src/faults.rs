//! Failures that a test asks for, worded as DynamoDB words real ones.

use zenobe_engine::throughput::cause::Throttled;

use crate::error::{ApiError, CancellationEntry};
use crate::messages::{engine, request, table, tag, throughput};
use crate::{Operation, Response};

/// A failure that the database itself did not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InjectedFault<'a> {
    /// Too many requests for a table or one of its indexes.
    Throttled(Throttled),
    /// Too many requests that are not about items.
    ControlPlaneThrottled,
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
    /// A tag of Zenobe's own says nothing that it understands.
    WrongTag {
        key: &'a str,
        problem: &'a str,
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
            InjectedFault::Throttled(throttled) => throughput::throttled(&throttled),
            InjectedFault::ControlPlaneThrottled => throughput::rate_exceeded(),
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
            InjectedFault::WrongTag { key, problem } => tag::wrong_test_rule(key, problem),
        }
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
}
