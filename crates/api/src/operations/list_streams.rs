//! ListStreams.

use std::sync::Arc;

use zenobe_engine::command::{ListStreams, StreamPage};

use super::stream_input::{constrain_arn, stream_name, worded};
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::{Context, Reply};

const LIMIT_MAX: i64 = 100;

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let command = lower(context, request(body)?)?;
    let page = context.engine.list_streams(&command).await;
    Ok(render(&page.map_err(|error| worded(error, "", ""))?))
}

shape! {
    struct ListStreamsInput {
        "TableName" => table_name: String,
        "Limit" => limit: i32,
        "ExclusiveStartStreamArn" => exclusive_start_stream_arn: String,
    }
}

fn lower(context: &Context<'_>, input: ListStreamsInput) -> Result<ListStreams, ApiError> {
    let mut violations = Violations::new();
    if let Some(name) = &input.table_name {
        violations.name(name, "tableName");
    }
    let limit = input.limit.map_or(LIMIT_MAX, i64::from);
    violations.range(limit, "limit", 1, LIMIT_MAX);
    let start = input.exclusive_start_stream_arn.as_deref();
    constrain_arn(start, "exclusiveStartStreamArn", &mut violations);
    violations.finish()?;
    let start = start.map(|arn| stream_name(context, arn)).transpose()?;
    Ok(ListStreams {
        namespace: Arc::clone(context.namespace),
        table: input.table_name,
        start_after: start.map(|stream| (stream.table.name, stream.label)),
        limit: usize::try_from(limit).unwrap_or_default(),
    })
}

fn render(page: &StreamPage) -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("Streams").array(&page.streams, |writer, stream| {
            writer.object(|writer| {
                writer.name("StreamArn").string(&stream.arn());
                writer.name("TableName").string(&stream.table.name);
                writer.name("StreamLabel").string(&stream.label);
            });
        });
        if let Some(last) = page.streams.last().filter(|_| page.more) {
            writer.name("LastEvaluatedStreamArn").string(&last.arn());
        }
    });
    Reply(writer.finish())
}
