//! DescribeEndpoints.

use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::{Context, Reply};

const CACHE_PERIOD_MINUTES: u32 = 1_440;

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let _: DescribeEndpointsRequest = request(body)?;
    let address = match &context.options.endpoint {
        Some(endpoint) => endpoint.clone(),
        None => format!("dynamodb.{}.amazonaws.com", context.namespace.region),
    };
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("Endpoints").array([address], |writer, address| {
            writer.object(|writer| {
                writer.name("Address").string(&address);
                writer.name("CachePeriodInMinutes").integer(CACHE_PERIOD_MINUTES);
            });
        });
    });
    Ok(Reply(writer.finish()))
}

shape! {
    struct DescribeEndpointsRequest {}
}
