//! BatchGetItem.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use zenobe_engine::command::{BatchGet, BatchGetOutcome, BatchGetTable};
use zenobe_expression::{ExpressionKind, Projection};
use zenobe_value::{Attributes, EncodedItem};

use super::enumerations::ReturnCapacity;
use crate::constraints::{Violations, printed_text};
use crate::error::ApiError;
use crate::json::attribute_value::WireAttributes;
use crate::json::decode::{
    BoundedMap, Decode, JsonError, JsonPosition, OrderedMap, STRUCTURES_KEPT_MAX, request, shape,
};
use crate::json::{JsonReader, Writer, write_attributes, write_item};
use crate::legacy::attributes_to_get;
use crate::messages::batch;
use crate::messages::constraint::Constraint;
use crate::parameters::expressions::{Placeholders, check_names_are_used, check_not_mixed};
use crate::parameters::items;
use crate::parameters::returns::return_capacity;
use crate::render::write_consumed_list_member;
use crate::{Context, Reply};

const KEYS_MAX: usize = 100;

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: BatchGetItemInput = request(body)?;
    let (requests, capacity) = constrained(context, input, body)?;
    check_counts(context, &requests)?;
    let (echoes, command) = lowered(context, requests, body)?;
    let outcome =
        context.reads().batch_get(&command).await.map_err(|error| context.items(error))?;
    Ok(render(&echoes, &command, &outcome, capacity))
}

shape! {
    struct BatchGetItemInput {
        "RequestItems" => request_items: WireRequests,
        "ReturnConsumedCapacity" => return_consumed_capacity: String,
    }

    struct KeysAndAttributes {
        "Keys" => keys: Vec<WireKey>,
        "AttributesToGet" => attributes_to_get: Vec<String>,
        "ConsistentRead" => consistent_read: bool,
        "ProjectionExpression" => projection_expression: String,
        "ExpressionAttributeNames" => expression_attribute_names: OrderedMap<String>,
    }

    /// The text of a number; other types don't matter.
    struct WireNumber {
        "N" => n: String,
    }
}

/// A key, and the position of its text in the request.
#[derive(Debug, Clone)]
pub(crate) struct WireKey {
    attributes: WireAttributes,
    text: Range<usize>,
}

impl Decode for WireKey {
    const ELEMENTS_KEPT_MAX: usize = STRUCTURES_KEPT_MAX;

    fn collection_type() -> String {
        WireAttributes::collection_type()
    }

    fn decode(reader: &mut JsonReader<'_>, position: JsonPosition) -> Result<Self, JsonError> {
        let start = reader.position();
        let attributes = WireAttributes::decode(reader, position)?;
        Ok(WireKey { attributes, text: start..reader.position() })
    }
}

/// The requests, and the position of their text.
#[derive(Debug, Clone, Default)]
pub(crate) struct WireRequests {
    requests: BoundedMap<KeysAndAttributes>,
    text: Range<usize>,
}

impl Decode for WireRequests {
    fn collection_type() -> String {
        BoundedMap::<KeysAndAttributes>::collection_type()
    }

    fn decode(reader: &mut JsonReader<'_>, position: JsonPosition) -> Result<Self, JsonError> {
        let start = reader.position();
        let requests = BoundedMap::decode(reader, position)?;
        Ok(WireRequests { requests, text: start..reader.position() })
    }
}

type GetRequests = Vec<(String, KeysAndAttributes)>;

fn constrained(
    context: &Context<'_>,
    input: BatchGetItemInput,
    body: &[u8],
) -> Result<(GetRequests, ReturnCapacity), ApiError> {
    let mut violations = Violations::new();
    let capacity = return_capacity(input.return_consumed_capacity.as_deref(), &mut violations);
    let is_given = input.request_items.is_some();
    let wire = violations.required(input.request_items, "requestItems");
    let BoundedMap(requests) = wire.requests;
    if is_given && requests.is_empty() {
        return Err(context.request_items_required());
    }
    let names = requests.iter().map(|(name, _)| name.as_str());
    violations.table_names_as_keys(names, || printed_text(&body[wire.text]));
    for (table, request) in &requests {
        let path = |member: &str| format!("requestItems.{table}.member.{member}");
        match &request.keys {
            None => violations.add(None, &path("keys"), Constraint::NotNull),
            Some(keys) if keys.is_empty() => {
                violations.add(Some("[]"), &path("keys"), Constraint::LengthMin(1));
            }
            Some(_) => {}
        }
        let names = request.attributes_to_get.as_deref();
        attributes_to_get::check_length(names, &path("attributesToGet"), &mut violations);
    }
    violations.finish()?;
    Ok((requests, capacity))
}

/// Too many keys for one table are a different fault from too many in total.
fn check_counts(context: &Context<'_>, requests: &GetRequests) -> Result<(), ApiError> {
    let mut total = 0;
    for (table, request) in requests {
        let count = request.keys.as_ref().map_or(0, Vec::len);
        if count > KEYS_MAX {
            return Err(batch::too_many_keys(table));
        }
        total += count;
    }
    if total > KEYS_MAX {
        return Err(batch::too_many_items(context.operation.name()));
    }
    Ok(())
}

/// The parts of a table's request that the response repeats: its name and, if some keys are
/// unprocessed, everything but the keys.
struct Echo {
    table: String,
    consistent_read: Option<bool>,
    projection_expression: Option<String>,
    expression_attribute_names: Option<OrderedMap<String>>,
    attributes_to_get: Option<Vec<String>>,
}

fn lowered(
    context: &Context<'_>,
    requests: GetRequests,
    body: &[u8],
) -> Result<(Vec<Echo>, BatchGet), ApiError> {
    check_dialects(&requests)?;
    let mut echoes = Vec::with_capacity(requests.len());
    let mut tables = Vec::with_capacity(requests.len());
    for (given_name, request) in requests {
        let table = context.item_table(Some(&given_name))?;
        let echo = Echo {
            table: given_name,
            consistent_read: request.consistent_read,
            projection_expression: request.projection_expression,
            expression_attribute_names: request.expression_attribute_names,
            attributes_to_get: request.attributes_to_get,
        };
        let projection = projection(&echo)?;
        let keys = checked_keys(request.keys.unwrap_or_default(), body)?;
        let consistent = echo.consistent_read.unwrap_or(false);
        tables.push(BatchGetTable { table, keys, projection, consistent });
        echoes.push(echo);
    }
    Ok((echoes, BatchGet { tables }))
}

/// Expressions and legacy parameters don't mix, not even on different tables.
fn check_dialects(requests: &GetRequests) -> Result<(), ApiError> {
    let any = |given: fn(&KeysAndAttributes) -> bool| requests.iter().any(|(_, one)| given(one));
    let legacy = any(|request| request.attributes_to_get.is_some());
    let expression = any(|request| request.projection_expression.is_some());
    check_not_mixed(&[("AttributesToGet", legacy)], &[(ExpressionKind::Projection, expression)])
}

fn projection(echo: &Echo) -> Result<Option<Projection>, ApiError> {
    let expression = echo.projection_expression.as_deref();
    let names = echo.expression_attribute_names.as_ref();
    check_names_are_used(names, &[(ExpressionKind::Projection, expression.is_some())])?;
    attributes_to_get::check_distinct(echo.attributes_to_get.as_deref())?;
    let placeholders = Placeholders::check(names.cloned(), None)?;
    let mut expressions = placeholders.expressions();
    let projection = expressions.projection(expression)?;
    expressions.finish()?;
    Ok(projection.or_else(|| echo.attributes_to_get.clone().map(attributes_to_get::projection)))
}

fn checked_keys(keys: Vec<WireKey>, body: &[u8]) -> Result<Vec<Attributes>, ApiError> {
    let mut checked = Vec::with_capacity(keys.len());
    let mut texts = Vec::with_capacity(keys.len());
    for key in keys {
        checked.push(items::attributes(key.attributes)?);
        texts.push(&body[key.text]);
    }
    if !are_distinct(checked.iter().map(EncodedItem::encode).map(|key| key.as_bytes().clone())) {
        check_distinct_texts(&checked, &texts)?;
    }
    Ok(checked)
}

/// DynamoDB compares the texts of numbers here, so a request may ask for both `1` and `1.0`.
fn check_distinct_texts(keys: &[Attributes], texts: &[&[u8]]) -> Result<(), ApiError> {
    let mut identities = Vec::with_capacity(keys.len());
    for (key, text) in keys.iter().zip(texts) {
        let OrderedMap(mut numbers) = request::<OrderedMap<WireNumber>>(text)?;
        numbers.sort_by(|(one, _), (two, _)| one.cmp(two));
        let numbers: Vec<Option<String>> =
            numbers.into_iter().map(|(_, number)| number.n).collect();
        identities.push((EncodedItem::encode(key).as_bytes().clone(), numbers));
    }
    if are_distinct(identities) { Ok(()) } else { Err(batch::duplicate_keys()) }
}

fn are_distinct<T: Eq + std::hash::Hash>(identities: impl IntoIterator<Item = T>) -> bool {
    let mut seen = HashSet::new();
    identities.into_iter().all(|identity| seen.insert(identity))
}

fn render(
    echoes: &[Echo],
    command: &BatchGet,
    outcome: &BatchGetOutcome,
    capacity: ReturnCapacity,
) -> Reply {
    let items = outcome.tables.iter().flat_map(|table| &table.items);
    let encoded_size_bytes: usize = items.map(|item| item.as_bytes().len()).sum();
    // The JSON takes somewhat more space than the items, so the buffer rarely grows more than once.
    let mut writer = Writer::with_capacity(2 * encoded_size_bytes + 256);
    writer.object(|writer| {
        writer.name("Responses").object(|writer| {
            for (echo, table) in echoes.iter().zip(&outcome.tables) {
                writer.name(&echo.table).array(&table.items, |writer, item: &EncodedItem| {
                    write_item(writer, item.as_item());
                });
            }
        });
        writer.name("UnprocessedKeys").object(|writer| {
            let requests = echoes.iter().zip(&command.tables);
            for ((echo, request), table) in requests.zip(&outcome.tables) {
                if !table.unprocessed.is_empty() {
                    let keys = table.unprocessed.iter().map(|position| &request.keys[*position]);
                    write_unprocessed(writer.name(&echo.table), echo, keys);
                }
            }
        });
        let names = echoes.iter().map(|echo| Cow::Borrowed(echo.table.as_str()));
        let consumed = names.zip(outcome.tables.iter().map(|table| &table.consumed));
        write_consumed_list_member(writer, consumed, capacity);
    });
    Reply(writer.finish())
}

/// The request for the unprocessed keys, ready to send again.
fn write_unprocessed<'k>(
    writer: &mut Writer,
    echo: &Echo,
    keys: impl Iterator<Item = &'k Attributes>,
) {
    writer.object(|writer| {
        writer.name("Keys").array(keys, write_attributes);
        if let Some(names) = &echo.attributes_to_get {
            writer.name("AttributesToGet").array(names, |writer, name| writer.string(name));
        }
        if let Some(consistent) = echo.consistent_read {
            writer.name("ConsistentRead").bool(consistent);
        }
        if let Some(expression) = &echo.projection_expression {
            writer.name("ProjectionExpression").string(expression);
        }
        if let Some(OrderedMap(names)) = &echo.expression_attribute_names {
            writer.name("ExpressionAttributeNames").object(|writer| {
                for (placeholder, name) in names {
                    writer.name(placeholder).string(name);
                }
            });
        }
    });
}
