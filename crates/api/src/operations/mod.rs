//! The operations of DynamoDB's API, one module for each or for a few that belong together.
//!
//! `operations!` lists them: it decides which names a client can call and which function handles
//! each. The modules are declared beside it, because rustfmt doesn't see what a macro declares.

mod backup_arn;
mod backups;
mod batch_execute_statement;
mod batch_get_item;
mod batch_write_item;
mod bulk_operations;
mod continuous_backups;
mod contributor_insights;
pub(crate) mod create_table;
mod delete_item;
mod delete_table;
mod describe_endpoints;
mod describe_exports;
mod describe_imports;
mod describe_limits;
mod describe_stream;
mod describe_table;
mod describe_time_to_live;
pub(crate) mod enumerations;
mod execute_statement;
mod execute_transaction;
mod export_table;
mod get_item;
pub(crate) mod get_records;
mod get_shard_iterator;
mod import_table;
mod job_page;
mod kinesis_destinations;
mod legacy_global_tables;
mod list_streams;
mod list_tables;
mod list_tags_of_resource;
mod page;
mod put_item;
mod query;
mod replica_auto_scaling;
mod restore_table;
mod scan;
mod search_vectors;
pub(crate) mod stream_input;
mod table_input;
mod tag_resource;
mod transact_get_items;
mod transact_write_items;
mod untag_resource;
mod update_item;
mod update_table;
mod update_time_to_live;

use std::future::ready;
use std::pin::Pin;

use crate::error::ApiError;
use crate::{Context, Reply, messages};

pub use stream_input::table_of_iterator;

impl Operation {
    /// Whether it can be called as of a time.
    pub(crate) fn reads_the_past(self) -> bool {
        matches!(
            self,
            Operation::GetItem
                | Operation::BatchGetItem
                | Operation::Query
                | Operation::Scan
                | Operation::ExecuteStatement
                | Operation::BatchExecuteStatement
        )
    }
}

/// A running operation.
pub(crate) type RunningOperation<'a> =
    Pin<Box<dyn Future<Output = Result<Reply, ApiError>> + Send + 'a>>;

/// How large an operation's response may be. The server reserves memory for it before it starts the
/// operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseSize {
    /// One item, a description or a list of names. A cancelled transaction may return more items;
    /// reserving for each write would make writers wait for what hardly ever comes.
    Small,
    /// A page of items or records.
    Page,
    /// The items of many keys or statements.
    Batch,
}

/// Declares the operations of both services, each with the function that handles it and the size of
/// its response. An operation without a function is known by name, and calling it fails as not
/// supported.
macro_rules! operations {
    ($($service:literal {
        $($operation:ident $(=> $module:ident::$handler:ident, $size:ident)?;)*
    })*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Operation {
            $($($operation,)*)*
        }

        impl Operation {
            pub const ALL: &'static [Operation] = &[$($(Operation::$operation,)*)*];

            /// The operation that an `X-Amz-Target` header names.
            pub fn from_target(target: &str) -> Option<Operation> {
                match target {
                    $($(concat!($service, ".", stringify!($operation)) => {
                        Some(Operation::$operation)
                    })*)*
                    _ => None,
                }
            }

            /// What an `X-Amz-Target` header calls it.
            pub fn target(self) -> &'static str {
                match self {
                    $($(Operation::$operation => {
                        concat!($service, ".", stringify!($operation))
                    })*)*
                }
            }

            /// The operation with this name, such as `PutItem`. No two operations of the services
            /// share one.
            pub fn from_name(name: &str) -> Option<Operation> {
                match name {
                    $($(stringify!($operation) => Some(Operation::$operation),)*)*
                    _ => None,
                }
            }

            pub fn name(&self) -> &'static str {
                match self {
                    $($(Operation::$operation => stringify!($operation),)*)*
                }
            }

            pub fn response_size(self) -> ResponseSize {
                match self {
                    $($(Operation::$operation => operations!(@size $($size)?),)*)*
                }
            }
        }

        /// Starts the operation that the context names.
        ///
        /// Each operation has its own future on the heap. A common one would be as large as the largest,
        /// some kilobytes, and would be copied at every level between here and the connection.
        pub(crate) fn dispatch<'a>(context: &'a Context<'a>, body: &'a [u8]) -> RunningOperation<'a> {
            match context.operation {
                $($(Operation::$operation => {
                    operations!(@start context, body, $($module::$handler)?)
                })*)*
            }
        }
    };
    (@size $size:ident) => { ResponseSize::$size };
    (@size) => { ResponseSize::Small };
    (@start $context:ident, $body:ident, $module:ident::$handler:ident) => {
        Box::pin($module::$handler($context, $body))
    };
    (@start $context:ident, $body:ident,) => {
        Box::pin(ready(Err(messages::operation_not_supported($context.operation.name()))))
    };
}

operations! {
    "DynamoDB_20120810" {
        BatchExecuteStatement => batch_execute_statement::handle, Batch;
        BatchGetItem => batch_get_item::handle, Batch;
        BatchWriteItem => batch_write_item::handle, Small;
        CancelBulkOperation => bulk_operations::cancel, Small;
        CreateBackup => backups::create, Small;
        CreateGlobalTable => legacy_global_tables::create, Small;
        CreateTable => create_table::handle, Small;
        DeleteBackup => backups::delete, Small;
        DeleteItem => delete_item::handle, Small;
        DeleteResourcePolicy;
        DeleteTable => delete_table::handle, Small;
        DescribeBackup => backups::describe, Small;
        DescribeBulkOperation => bulk_operations::describe, Small;
        DescribeContinuousBackups => continuous_backups::describe, Small;
        DescribeContributorInsights => contributor_insights::describe, Small;
        DescribeEndpoints => describe_endpoints::handle, Small;
        DescribeExport => describe_exports::describe, Small;
        DescribeGlobalTable => legacy_global_tables::find, Small;
        DescribeGlobalTableSettings => legacy_global_tables::find, Small;
        DescribeImport => describe_imports::describe, Small;
        DescribeKinesisStreamingDestination => kinesis_destinations::describe, Small;
        DescribeLimits => describe_limits::handle, Small;
        DescribeTable => describe_table::handle, Small;
        DescribeTableReplicaAutoScaling => replica_auto_scaling::describe, Small;
        DescribeTimeToLive => describe_time_to_live::handle, Small;
        DisableKinesisStreamingDestination => kinesis_destinations::disable, Small;
        EnableKinesisStreamingDestination => kinesis_destinations::enable, Small;
        ExecuteStatement => execute_statement::handle, Page;
        ExecuteTransaction => execute_transaction::handle, Batch;
        ExportTableToPointInTime => export_table::handle, Small;
        GetItem => get_item::handle, Small;
        GetResourcePolicy;
        ImportTable => import_table::handle, Small;
        ListBackups => backups::list, Small;
        ListBulkOperations => bulk_operations::list, Small;
        ListContributorInsights => contributor_insights::list, Small;
        ListExports => describe_exports::list, Small;
        ListGlobalTables => legacy_global_tables::list, Small;
        ListImports => describe_imports::list, Small;
        ListTables => list_tables::handle, Small;
        ListTagsOfResource => list_tags_of_resource::handle, Small;
        PutItem => put_item::handle, Small;
        PutResourcePolicy;
        Query => query::handle, Page;
        RestoreTableFromBackup => restore_table::from_backup, Small;
        RestoreTableToPointInTime => restore_table::to_point_in_time, Small;
        Scan => scan::handle, Page;
        SearchVectors => search_vectors::handle, Small;
        StartBulkPutItems => bulk_operations::start, Small;
        TagResource => tag_resource::handle, Small;
        TransactGetItems => transact_get_items::handle, Batch;
        TransactWriteItems => transact_write_items::handle, Small;
        UntagResource => untag_resource::handle, Small;
        UpdateContinuousBackups => continuous_backups::update, Small;
        UpdateContributorInsights => contributor_insights::update, Small;
        UpdateGlobalTable => legacy_global_tables::find, Small;
        UpdateGlobalTableSettings => legacy_global_tables::find, Small;
        UpdateItem => update_item::handle, Small;
        UpdateKinesisStreamingDestination => kinesis_destinations::update, Small;
        UpdateTable => update_table::handle, Small;
        UpdateTableReplicaAutoScaling => replica_auto_scaling::update, Small;
        UpdateTimeToLive => update_time_to_live::handle, Small;
    }
    "DynamoDBStreams_20120810" {
        DescribeStream => describe_stream::handle, Small;
        GetRecords => get_records::handle, Page;
        GetShardIterator => get_shard_iterator::handle, Small;
        ListStreams => list_streams::handle, Small;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_with_large_responses_say_so() {
        let of_size = |size| {
            let operations = Operation::ALL.iter().filter(|each| each.response_size() == size);
            operations.map(Operation::name).collect::<Vec<_>>()
        };
        let pages = ["ExecuteStatement", "Query", "Scan", "GetRecords"];
        assert_eq!(of_size(ResponseSize::Page), pages);
        let batches =
            ["BatchExecuteStatement", "BatchGetItem", "ExecuteTransaction", "TransactGetItems"];
        assert_eq!(of_size(ResponseSize::Batch), batches);
    }

    #[test]
    fn targets_name_operations_case_sensitively() {
        assert_eq!(Operation::ALL.len(), 66);
        let parse = Operation::from_target;
        assert_eq!(parse("DynamoDB_20120810.PutItem"), Some(Operation::PutItem));
        assert_eq!(parse("DynamoDBStreams_20120810.GetRecords"), Some(Operation::GetRecords));
        for unknown in ["", "PutItem", "DynamoDB_20120810.putItem", "DynamoDB_20111205.PutItem"] {
            assert_eq!(parse(unknown), None, "{unknown}");
        }
        assert_eq!(parse("DynamoDBStreams_20120810.PutItem"), None);
        assert_eq!(Operation::UpdateTimeToLive.name(), "UpdateTimeToLive");
        for operation in Operation::ALL {
            assert_eq!(Operation::from_name(operation.name()), Some(*operation));
            assert_eq!(Operation::from_target(operation.target()), Some(*operation));
        }
        assert_eq!(Operation::from_name("DynamoDB_20120810.PutItem"), None);
    }
}
