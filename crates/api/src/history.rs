//! The history of one item, for operators: what it was, and what each change changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use zenobe_engine::history::{ItemHistory, Version};
use zenobe_engine::schema::Namespace;
use zenobe_value::{EncodedItem, ItemRef};

use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::attribute_value::WireAttributes;
use crate::json::decode::{request, shape};
use crate::json::{Writer, write_item, write_value};
use crate::messages::constraint::Constraint;
use crate::parameters::items;
use crate::{Api, Context, Operation, Reply, Response};

const LIMIT_DEFAULT: i32 = 20;
const LIMIT_MAX: i64 = 1_000;

impl Api {
    /// The newest versions of an item, newest first, each with what it changed. The request is JSON with `TableName`,
    /// `Key`, and perhaps `Limit` and `Before`, the `Stamp` of the last version seen. A page of large versions has fewer.
    pub async fn item_history(&self, namespace: &Arc<Namespace>, body: &[u8]) -> Response {
        // It reads one item, like GetItem.
        let context = self.context(Operation::GetItem, namespace);
        match handle(&context, body).await {
            Ok(Reply(body)) => Response::ok(body),
            Err(error) => error.into_response(),
        }
    }
}

shape! {
    struct ItemHistoryInput {
        "TableName" => table_name: String,
        "Key" => key: WireAttributes,
        "Limit" => limit: i32,
        "Before" => before: String,
    }
}

async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: ItemHistoryInput = request(body)?;
    let mut violations = Violations::new();
    violations.required(input.key.as_ref().map(|_| ()), "key");
    violations.table_name(input.table_name.as_deref());
    if let Some(limit) = input.limit {
        violations.range(limit.into(), "limit", 1, LIMIT_MAX);
    }
    let before = input.before.as_deref().map(|text| (text, text.parse().ok()));
    if let Some((text, None)) = before {
        violations.add(Some(text), "before", Constraint::Pattern("[0-9]+"));
    }
    violations.finish()?;
    let table = context.item_table(input.table_name.as_deref())?;
    let key = items::attributes(input.key.unwrap_or_default())?;
    let limit = input.limit.unwrap_or(LIMIT_DEFAULT).unsigned_abs() as usize;
    let before = before.and_then(|(_, bits)| bits).map(zenobe_engine::history::Stamp::from_bits);
    // One more, so that the last one shown can be compared with the one before it.
    let found = context.engine.item_history(&table, &key, before, limit + 1).await;
    Ok(render(&found.map_err(|error| context.items(error))?, limit))
}

fn render(history: &ItemHistory, limit: usize) -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("TableName").string(&history.table.name);
        writer.name("EarliestRestorableDateTime").timestamp(history.window.earliest_ms);
        let has_more = history.more || history.versions.len() > limit;
        // The last one is only there for comparison.
        let shown = history.versions.len() - usize::from(history.more);
        let shown = history.versions.iter().take(limit.min(shown)).enumerate();
        let last = shown.clone().last().map(|(_, last)| last);
        writer.name("Versions").array(shown, |writer, (position, version)| {
            write_version(writer, version, history.versions.get(position + 1));
        });
        if let Some(since) = last.and_then(|last| last.since).filter(|_| has_more) {
            writer.name("Before").string(&since.to_bits().to_string());
        }
    });
    Reply(writer.finish())
}

fn write_version(writer: &mut Writer, version: &Version, earlier: Option<&Version>) {
    writer.object(|writer| {
        if let Some(since) = version.since {
            writer.name("At").timestamp(since.at_ms());
            writer.name("Stamp").string(&since.to_bits().to_string());
        }
        let change = match (version.since, earlier, &version.item) {
            (None, _, _) | (_, None, _) => "UNKNOWN",
            (_, Some(Version { item: None, .. }), Some(_)) => "INSERT",
            (_, Some(Version { item: Some(_), .. }), Some(_)) => "MODIFY",
            (_, Some(_), None) => "REMOVE",
        };
        writer.name("Change").string(change);
        if let Some(item) = &version.item {
            write_item(writer.name("Item"), item.as_item());
        }
        if let (Some(_), Some(earlier)) = (version.since, earlier) {
            write_changes(writer, earlier.item.as_ref(), version.item.as_ref());
        }
    });
}

/// The attributes that differ.
fn write_changes(writer: &mut Writer, old: Option<&EncodedItem>, new: Option<&EncodedItem>) {
    let [old, new] = [old, new].map(|item| item.map(EncodedItem::as_item));
    let names = |item: Option<ItemRef<'_>>| -> BTreeSet<String> {
        item.map_or_else(BTreeSet::new, |item| item.decode().into_keys().collect())
    };
    let value = |item: Option<ItemRef<'_>>, name: &str| {
        item.and_then(|item| item.get(name)).map(|value| value.decode())
    };
    let all: BTreeSet<String> = names(old).union(&names(new)).cloned().collect();
    let changed: Vec<String> =
        all.into_iter().filter(|name| value(old, name) != value(new, name)).collect();
    writer.name("Attributes").array(changed, |writer, name| {
        writer.object(|writer| {
            writer.name("Name").string(&name);
            for (member, item) in [("Old", old), ("New", new)] {
                if let Some(value) = item.and_then(|item| item.get(&name)) {
                    write_value(writer.name(member), value);
                }
            }
        });
    });
}
