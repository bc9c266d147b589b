//! One file per operation.

mod describe_table;
pub(crate) mod enumerations;
mod list_tables;

use crate::error::ApiError;
use crate::{Context, Operation, Reply, messages};

/// Runs the operation. Operations that are known but not built say so.
pub(crate) async fn dispatch(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    match context.operation {
        Operation::DescribeTable => describe_table::handle(context, body).await,
        Operation::ListTables => list_tables::handle(context, body).await,
        other => Err(messages::operation_not_supported(other.name())),
    }
}
