//! DescribeLimits.

use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::{Context, Reply};

/// The account's quota for all its tables together, DynamoDB's default.
const ACCOUNT_CAPACITY_UNITS_MAX: u64 = 80_000;

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let _: DescribeLimitsInput = request(body)?;
    let table_max = context.engine.limits().table_capacity_units_max;
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("AccountMaxReadCapacityUnits").integer(ACCOUNT_CAPACITY_UNITS_MAX);
        writer.name("AccountMaxWriteCapacityUnits").integer(ACCOUNT_CAPACITY_UNITS_MAX);
        writer.name("TableMaxReadCapacityUnits").integer(table_max);
        writer.name("TableMaxWriteCapacityUnits").integer(table_max);
    });
    Ok(Reply(writer.finish()))
}

shape! {
    struct DescribeLimitsInput {}
}
