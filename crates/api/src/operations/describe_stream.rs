//! DescribeStream.

use zenobe_engine::command::{DescribeStream, ShardDescription, StreamDescription};

use super::enumerations::STREAM_VIEW_TYPE;
use super::stream_input::{constrain_shard_id, required_arn, stream_name, worded};
use crate::constraints::{Enumeration, Violations};
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::render::write_key_schema;
use crate::{Context, Reply};

const LIMIT_MAX: i64 = 100;

static SHARD_FILTER_TYPE: Enumeration<()> = Enumeration(&[("CHILD_SHARDS", ())]);

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let command = lower(context, request(body)?)?;
    let description = context.engine.describe_stream(&command).await;
    Ok(render(&description.map_err(|error| worded(error, &command.stream.arn(), ""))?))
}

shape! {
    struct DescribeStreamInput {
        "StreamArn" => stream_arn: String,
        "Limit" => limit: i32,
        "ExclusiveStartShardId" => exclusive_start_shard_id: String,
        "ShardFilter" => shard_filter: ShardFilter,
    }

    struct ShardFilter {
        "Type" => filter_type: String,
        "ShardId" => shard_id: String,
    }
}

fn lower(context: &Context<'_>, input: DescribeStreamInput) -> Result<DescribeStream, ApiError> {
    let mut violations = Violations::new();
    let arn = required_arn(input.stream_arn, "streamArn", &mut violations);
    let limit = input.limit.map_or(LIMIT_MAX, i64::from);
    violations.range(limit, "limit", 1, LIMIT_MAX);
    let start_after = input.exclusive_start_shard_id;
    constrain_shard_id(start_after.as_deref(), "exclusiveStartShardId", &mut violations);
    let children_of = input.shard_filter.map(|filter| constrain_filter(filter, &mut violations));
    violations.finish()?;
    Ok(DescribeStream {
        stream: stream_name(context, &arn)?,
        start_after,
        children_of,
        limit: usize::try_from(limit).unwrap_or_default(),
    })
}

/// The shard whose children are wanted. Both members of a filter are required.
fn constrain_filter(filter: ShardFilter, violations: &mut Violations) -> String {
    let filter_type = filter.filter_type.as_deref();
    violations.required_enumeration(filter_type, "shardFilter.type", &SHARD_FILTER_TYPE);
    constrain_shard_id(filter.shard_id.as_deref(), "shardFilter.shardId", violations);
    violations.required(filter.shard_id, "shardFilter.shardId")
}

fn render(description: &StreamDescription) -> Reply {
    let StreamDescription { stream, shards, .. } = description;
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("StreamDescription").object(|writer| {
            writer.name("StreamArn").string(&stream.arn());
            writer.name("StreamLabel").string(&stream.label);
            let status = if description.enabled { "ENABLED" } else { "DISABLED" };
            writer.name("StreamStatus").string(status);
            let view_type = STREAM_VIEW_TYPE.name_of(&description.view_type);
            writer.name("StreamViewType").string(view_type);
            writer.name("CreationRequestDateTime").timestamp(description.created_at_ms);
            writer.name("TableName").string(&stream.table.name);
            write_key_schema(writer.name("KeySchema"), &description.keys);
            writer.name("Shards").array(shards, write_shard);
            if let Some(last) = shards.last().filter(|_| description.more) {
                writer.name("LastEvaluatedShardId").string(&last.id.to_string());
            }
        });
    });
    Reply(writer.finish())
}

fn write_shard(writer: &mut Writer, shard: &ShardDescription) {
    writer.object(|writer| {
        writer.name("ShardId").string(&shard.id.to_string());
        writer.name("SequenceNumberRange").object(|writer| {
            writer.name("StartingSequenceNumber").string(&shard.first.to_string());
            if let Some(last) = &shard.last {
                writer.name("EndingSequenceNumber").string(&last.to_string());
            }
        });
        if let Some(parent) = &shard.parent {
            writer.name("ParentShardId").string(&parent.to_string());
        }
    });
}
