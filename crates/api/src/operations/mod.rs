//! One file per operation.

mod batch_execute_statement;
mod batch_get_item;
mod batch_write_item;
mod create_table;
mod delete_item;
mod delete_table;
mod describe_endpoints;
mod describe_limits;
mod describe_stream;
mod describe_table;
mod describe_time_to_live;
pub(crate) mod enumerations;
mod execute_statement;
mod execute_transaction;
mod get_item;
pub(crate) mod get_records;
mod get_shard_iterator;
mod kinesis_destinations;
mod legacy_global_tables;
mod list_streams;
mod list_tables;
mod list_tags_of_resource;
mod page;
mod put_item;
mod query;
mod replica_auto_scaling;
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
use crate::{Context, Operation, Reply, messages};

/// A running operation.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<Reply, ApiError>> + Send + 'a>>;

/// Starts the operation. Operations that are known but not supported say so.
///
/// Each operation has its own future on the heap. A common one would be as large as the largest,
/// some kilobytes, and would be copied at every level between here and the connection.
pub(crate) fn dispatch<'a>(context: &'a Context<'a>, body: &'a [u8]) -> Running<'a> {
    match context.operation {
        Operation::CreateGlobalTable
        | Operation::DescribeGlobalTable
        | Operation::DescribeGlobalTableSettings
        | Operation::ListGlobalTables
        | Operation::UpdateGlobalTable
        | Operation::UpdateGlobalTableSettings => {
            Box::pin(ready(legacy_global_tables::handle(context, body)))
        }
        Operation::BatchExecuteStatement => {
            Box::pin(batch_execute_statement::handle(context, body))
        }
        Operation::BatchGetItem => Box::pin(batch_get_item::handle(context, body)),
        Operation::BatchWriteItem => Box::pin(batch_write_item::handle(context, body)),
        Operation::CreateTable => Box::pin(create_table::handle(context, body)),
        Operation::DeleteItem => Box::pin(delete_item::handle(context, body)),
        Operation::DeleteTable => Box::pin(delete_table::handle(context, body)),
        Operation::DescribeEndpoints => Box::pin(describe_endpoints::handle(context, body)),
        Operation::DescribeKinesisStreamingDestination => {
            Box::pin(kinesis_destinations::describe(context, body))
        }
        Operation::DescribeLimits => Box::pin(describe_limits::handle(context, body)),
        Operation::DescribeStream => Box::pin(describe_stream::handle(context, body)),
        Operation::DescribeTable => Box::pin(describe_table::handle(context, body)),
        Operation::DescribeTableReplicaAutoScaling => {
            Box::pin(replica_auto_scaling::describe(context, body))
        }
        Operation::DescribeTimeToLive => Box::pin(describe_time_to_live::handle(context, body)),
        Operation::DisableKinesisStreamingDestination
        | Operation::EnableKinesisStreamingDestination => {
            Box::pin(kinesis_destinations::enable_or_disable(context, body))
        }
        Operation::ExecuteStatement => Box::pin(execute_statement::handle(context, body)),
        Operation::ExecuteTransaction => Box::pin(execute_transaction::handle(context, body)),
        Operation::GetItem => Box::pin(get_item::handle(context, body)),
        Operation::GetRecords => Box::pin(get_records::handle(context, body)),
        Operation::GetShardIterator => Box::pin(get_shard_iterator::handle(context, body)),
        Operation::ListStreams => Box::pin(list_streams::handle(context, body)),
        Operation::ListTables => Box::pin(list_tables::handle(context, body)),
        Operation::ListTagsOfResource => Box::pin(list_tags_of_resource::handle(context, body)),
        Operation::PutItem => Box::pin(put_item::handle(context, body)),
        Operation::Query => Box::pin(query::handle(context, body)),
        Operation::Scan => Box::pin(scan::handle(context, body)),
        Operation::SearchVectors => Box::pin(search_vectors::handle(context, body)),
        Operation::TagResource => Box::pin(tag_resource::handle(context, body)),
        Operation::TransactGetItems => Box::pin(transact_get_items::handle(context, body)),
        Operation::TransactWriteItems => Box::pin(transact_write_items::handle(context, body)),
        Operation::UntagResource => Box::pin(untag_resource::handle(context, body)),
        Operation::UpdateItem => Box::pin(update_item::handle(context, body)),
        Operation::UpdateKinesisStreamingDestination => {
            Box::pin(kinesis_destinations::update(context, body))
        }
        Operation::UpdateTable => Box::pin(update_table::handle(context, body)),
        Operation::UpdateTableReplicaAutoScaling => {
            Box::pin(replica_auto_scaling::update(context, body))
        }
        Operation::UpdateTimeToLive => Box::pin(update_time_to_live::handle(context, body)),
        other => Box::pin(ready(Err(messages::operation_not_supported(other.name())))),
    }
}
