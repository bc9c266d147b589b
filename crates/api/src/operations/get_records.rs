//! GetRecords.

use zenobe_engine::command::{RecordPage, StreamPosition};

use super::stream_input::{decode_iterator, encode_iterator, worded};
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::stream_records::{self, RecordForm};
use crate::{Context, Reply};

const LIMIT_MAX: i64 = 1_000;
const ITERATOR_LENGTH_MAX: usize = 2_048;

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let (iterator, limit) = check(request(body)?)?;
    let (position, page) = read(context, &iterator, limit).await?;
    context.engine.note_returned_records(&position.stream, &page);
    Ok(render(&position, &page))
}

/// Reads the records without rendering them, also for callers in this process that render them
/// differently.
pub(crate) async fn read(
    context: &Context<'_>,
    iterator: &str,
    limit: usize,
) -> Result<(StreamPosition, RecordPage), ApiError> {
    let position = decode_iterator(context, iterator)?;
    let page = context.engine.get_records(&position, limit).await;
    let page = page.map_err(|error| worded(error, &position.stream.arn(), ""))?;
    Ok((position, page))
}

shape! {
    struct GetRecordsInput {
        "ShardIterator" => shard_iterator: String,
        "Limit" => limit: i32,
    }
}

fn check(input: GetRecordsInput) -> Result<(String, usize), ApiError> {
    let mut violations = Violations::new();
    if let Some(iterator) = &input.shard_iterator {
        violations.length(iterator, "shardIterator", 1, ITERATOR_LENGTH_MAX);
    }
    let iterator = violations.required(input.shard_iterator, "shardIterator");
    let limit = input.limit.map_or(LIMIT_MAX, i64::from);
    violations.range(limit, "limit", 1, LIMIT_MAX);
    violations.finish()?;
    Ok((iterator, usize::try_from(limit).unwrap_or_default()))
}

fn render(position: &StreamPosition, page: &RecordPage) -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("Records").array(&page.records, |writer, record| {
            stream_records::write(writer, &position.stream, record, RecordForm::Api);
        });
        if let Some(next) = &page.next {
            writer.name("NextShardIterator").string(&encode_iterator(next));
        }
    });
    Reply(writer.finish())
}
