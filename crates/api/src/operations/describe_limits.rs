//! DescribeLimits.

use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let _: DescribeLimitsInput = request(body)?;
    let limits = context.engine.limits();
    let (account_max, table_max) =
        (limits.account_capacity_units_max, limits.table_capacity_units_max);
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("AccountMaxReadCapacityUnits").integer(account_max);
        writer.name("AccountMaxWriteCapacityUnits").integer(account_max);
        writer.name("TableMaxReadCapacityUnits").integer(table_max);
        writer.name("TableMaxWriteCapacityUnits").integer(table_max);
    });
    Ok(Reply(writer.finish()))
}

shape! {
    struct DescribeLimitsInput {}
}
