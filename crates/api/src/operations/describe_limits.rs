//! DescribeLimits.

use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::{Context, Reply};

/// The account's quota for all its tables together, DynamoDB's default.
const ACCOUNT_CAPACITY_UNITS_MAX: u64 = 80_000;
const TABLE_CAPACITY_UNITS_MAX: u64 = 40_000;

pub(crate) async fn handle(_: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let _: DescribeLimitsInput = request(body)?;
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("AccountMaxReadCapacityUnits").integer(ACCOUNT_CAPACITY_UNITS_MAX);
        writer.name("AccountMaxWriteCapacityUnits").integer(ACCOUNT_CAPACITY_UNITS_MAX);
        writer.name("TableMaxReadCapacityUnits").integer(TABLE_CAPACITY_UNITS_MAX);
        writer.name("TableMaxWriteCapacityUnits").integer(TABLE_CAPACITY_UNITS_MAX);
    });
    Ok(Reply(writer.finish()))
}

shape! {
    struct DescribeLimitsInput {}
}
