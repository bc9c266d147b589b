//! One file per operation.

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
mod get_item;
mod get_records;
mod get_shard_iterator;
mod legacy_global_tables;
mod list_streams;
mod list_tables;
mod list_tags_of_resource;
mod page;
mod put_item;
mod query;
mod scan;
mod stream_input;
mod table_input;
mod tag_resource;
mod transact_get_items;
mod transact_write_items;
mod untag_resource;
mod update_item;
mod update_table;
mod update_time_to_live;

use crate::error::ApiError;
use crate::{Context, Operation, Reply, messages};

/// Runs the operation. Operations that are known but not built say so.
pub(crate) async fn dispatch(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    match context.operation {
        Operation::CreateGlobalTable
        | Operation::DescribeGlobalTable
        | Operation::DescribeGlobalTableSettings
        | Operation::ListGlobalTables
        | Operation::UpdateGlobalTable
        | Operation::UpdateGlobalTableSettings => legacy_global_tables::handle(context, body),
        Operation::BatchGetItem => batch_get_item::handle(context, body).await,
        Operation::BatchWriteItem => batch_write_item::handle(context, body).await,
        Operation::CreateTable => create_table::handle(context, body).await,
        Operation::DeleteItem => delete_item::handle(context, body).await,
        Operation::DeleteTable => delete_table::handle(context, body).await,
        Operation::DescribeEndpoints => describe_endpoints::handle(context, body).await,
        Operation::DescribeLimits => describe_limits::handle(context, body).await,
        Operation::DescribeStream => describe_stream::handle(context, body).await,
        Operation::DescribeTable => describe_table::handle(context, body).await,
        Operation::DescribeTimeToLive => describe_time_to_live::handle(context, body).await,
        Operation::GetItem => get_item::handle(context, body).await,
        Operation::GetRecords => get_records::handle(context, body).await,
        Operation::GetShardIterator => get_shard_iterator::handle(context, body).await,
        Operation::ListStreams => list_streams::handle(context, body).await,
        Operation::ListTables => list_tables::handle(context, body).await,
        Operation::ListTagsOfResource => list_tags_of_resource::handle(context, body).await,
        Operation::PutItem => put_item::handle(context, body).await,
        Operation::Query => query::handle(context, body).await,
        Operation::Scan => scan::handle(context, body).await,
        Operation::TagResource => tag_resource::handle(context, body).await,
        Operation::TransactGetItems => transact_get_items::handle(context, body).await,
        Operation::TransactWriteItems => transact_write_items::handle(context, body).await,
        Operation::UntagResource => untag_resource::handle(context, body).await,
        Operation::UpdateItem => update_item::handle(context, body).await,
        Operation::UpdateTable => update_table::handle(context, body).await,
        Operation::UpdateTimeToLive => update_time_to_live::handle(context, body).await,
        other => Err(messages::operation_not_supported(other.name())),
    }
}
