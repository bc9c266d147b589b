//! Streams and time to live in scripts.

use std::fmt::Write;
use std::sync::Arc;

use zenobe_engine::Engine;
use zenobe_engine::command::*;
use zenobe_engine::error::Result;
use zenobe_engine::schema::StreamViewType;

use super::output::encoded;

/// `stream <table> keys|new|old|both|off`.
pub async fn change(engine: &Engine, table: TableName, view: &str) -> Result<String> {
    let change = match view {
        "off" => StreamChange::Disable,
        view => StreamChange::Enable(view_type(view)),
    };
    engine.update_table(UpdateTable { stream: Some(change), ..UpdateTable::of(table) }).await?;
    Ok("ok\n".into())
}

fn view_type(view: &str) -> StreamViewType {
    match view {
        "keys" => StreamViewType::KeysOnly,
        "new" => StreamViewType::NewImage,
        "old" => StreamViewType::OldImage,
        "both" => StreamViewType::NewAndOldImages,
        other => panic!("unknown view {other:?}"),
    }
}

/// `ttl <table> on|off <attribute>`.
pub async fn time_to_live(engine: &Engine, table: TableName, setting: &str) -> Result<String> {
    let (switch, attribute) = setting.split_once(' ').expect("a switch and an attribute");
    let enabled = switch == "on";
    let attribute = attribute.to_owned();
    engine.update_time_to_live(UpdateTimeToLive { table, enabled, attribute }).await?;
    Ok("ok\n".into())
}

/// `streams <table>`: the streams of all tables that had the name, with their shards.
pub async fn describe(engine: &Engine, table: &TableName) -> Result<String> {
    let mut text = String::new();
    for stream in names(engine, table).await? {
        let description = description(engine, &stream).await?;
        let state = if description.enabled { "enabled" } else { "disabled" };
        writeln!(text, "{} {:?} {state}", stream.label, description.view_type).unwrap();
        for shard in &description.shards {
            let parent = shard.parent.map_or(String::new(), |parent| format!(" after {parent}"));
            let last = shard.last.map_or("open".to_owned(), |last| format!("closed at {last}"));
            writeln!(text, "  {}{parent}, {last}", shard.id).unwrap();
        }
    }
    Ok(text)
}

/// `records <table>`: every record of its streams, shard by shard.
pub async fn print_records(engine: &Engine, table: &TableName) -> Result<String> {
    let mut text = String::new();
    for stream in names(engine, table).await? {
        for record in records(engine, &stream).await? {
            let StreamRecord { sequence_number, event, size_bytes, .. } = &record;
            let service = if record.by_service { " by service" } else { "" };
            let keys = encoded(&record.keys);
            write!(text, "{sequence_number} {event:?} {keys} {size_bytes} bytes{service}").unwrap();
            for (name, image) in [("old", &record.old), ("new", &record.new)] {
                if let Some(image) = image {
                    write!(text, "\n  {name} {}", encoded(image)).unwrap();
                }
            }
            text.push('\n');
        }
    }
    Ok(text)
}

pub async fn names(engine: &Engine, table: &TableName) -> Result<Vec<StreamName>> {
    let command = ListStreams {
        namespace: Arc::clone(&table.namespace),
        table: Some(table.name.clone()),
        start_after: None,
        limit: 100,
    };
    Ok(engine.list_streams(&command).await?.streams)
}

pub async fn description(engine: &Engine, stream: &StreamName) -> Result<StreamDescription> {
    let stream = stream.clone();
    let command = DescribeStream { stream, start_after: None, children_of: None, limit: 1_000 };
    engine.describe_stream(&command).await
}

/// Every record of a stream, parents before children.
pub async fn records(engine: &Engine, stream: &StreamName) -> Result<Vec<StreamRecord>> {
    let mut records = Vec::new();
    for shard in description(engine, stream).await?.shards {
        let shard = shard.id.to_string();
        let start = IteratorStart::TrimHorizon;
        let mut position = Some(engine.shard_iterator(stream, &shard, start).await?);
        while let Some(from) = position {
            let page = engine.get_records(&from, 3).await?;
            position = page.next.filter(|_| !page.records.is_empty());
            records.extend(page.records);
        }
    }
    Ok(records)
}
