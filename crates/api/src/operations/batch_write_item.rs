//! BatchWriteItem.

use std::borrow::Cow;

use zenobe_engine::command::{BatchWrite, BatchWriteOutcome, BatchWriteRequest, BatchWriteTable};

use crate::constraints::{Violations, printed_list, printed_map};
use crate::error::ApiError;
use crate::json::attribute_value::WireAttributes;
use crate::json::decode::{BoundedMap, request, shape};
use crate::json::{Writer, write_attributes};
use crate::messages::batch;
use crate::messages::constraint::{Constraint, java_object};
use crate::parameters::items;
use crate::parameters::returns::ItemsWriteReturns;
use crate::render::{write_consumed_list_member, write_item_collections_member};
use crate::{Context, Reply};

const REQUESTS_MAX: usize = 25;

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: BatchWriteItemInput = request(body)?;
    let (requests, returns) = constrained(context, input)?;
    // Tables are named in the response as in the request, which may have used an ARN.
    let names: Vec<String> = requests.iter().map(|(name, _)| name.clone()).collect();
    let command = lowered(context, requests, body.len())?;
    let outcome =
        context.engine.batch_write(command).await.map_err(|error| context.items(error))?;
    Ok(render(&names, &outcome, returns))
}

shape! {
    struct BatchWriteItemInput {
        "RequestItems" => request_items: BoundedMap<Vec<WriteRequest>>,
        "ReturnConsumedCapacity" => return_consumed_capacity: String,
        "ReturnItemCollectionMetrics" => return_item_collection_metrics: String,
    }

    struct WriteRequest {
        "PutRequest" => put_request: PutRequest,
        "DeleteRequest" => delete_request: DeleteRequest,
    }

    struct PutRequest {
        "Item" => item: WireAttributes,
    }

    struct DeleteRequest {
        "Key" => key: WireAttributes,
    }
}

type WriteRequests = Vec<(String, Vec<WriteRequest>)>;

fn constrained(
    context: &Context<'_>,
    input: BatchWriteItemInput,
) -> Result<(WriteRequests, ItemsWriteReturns), ApiError> {
    let mut violations = Violations::new();
    let returns = ItemsWriteReturns::parse(
        input.return_consumed_capacity.as_deref(),
        input.return_item_collection_metrics.as_deref(),
        &mut violations,
    );
    let is_given = input.request_items.is_some();
    let BoundedMap(requests) = violations.required(input.request_items, "requestItems");
    if is_given && requests.is_empty() {
        return Err(context.request_items_required());
    }
    let names = requests.iter().map(|(name, _)| name.as_str());
    violations.table_names_as_keys(names, || printed(&requests));
    if !requests.iter().all(|(_, list)| (1..=REQUESTS_MAX).contains(&list.len())) {
        let constraint = Constraint::MapValues { min: 1, max: REQUESTS_MAX };
        violations.add(Some(&printed(&requests)), "requestItems", constraint);
    }
    for (table, list) in &requests {
        for (position, request) in list.iter().enumerate() {
            let path = format!("requestItems.{table}.member.{}.member", position + 1);
            check_members(request, &path, &mut violations);
        }
    }
    violations.finish()?;
    Ok((requests, returns))
}

fn check_members(request: &WriteRequest, path: &str, violations: &mut Violations) {
    if request.put_request.as_ref().is_some_and(|put| put.item.is_none()) {
        violations.add(None, &format!("{path}.putRequest.item"), Constraint::NotNull);
    }
    if request.delete_request.as_ref().is_some_and(|delete| delete.key.is_none()) {
        violations.add(None, &format!("{path}.deleteRequest.key"), Constraint::NotNull);
    }
}

fn printed(requests: &WriteRequests) -> String {
    printed_map(requests, |list| printed_list(list, |_| java_object("WriteRequest")))
}

fn lowered(
    context: &Context<'_>,
    requests: WriteRequests,
    request_size_bytes: usize,
) -> Result<BatchWrite, ApiError> {
    if requests.iter().map(|(_, list)| list.len()).sum::<usize>() > REQUESTS_MAX {
        return Err(batch::too_many_items(context.operation.name()));
    }
    let mut tables = Vec::with_capacity(requests.len());
    for (table, list) in requests {
        let table = context.item_table(Some(&table))?;
        let write = |request| checked_write(request, request_size_bytes);
        let requests = list.into_iter().map(write).collect::<Result<_, _>>()?;
        tables.push(BatchWriteTable { table, requests });
    }
    Ok(BatchWrite { tables })
}

fn checked_write(
    request: WriteRequest,
    request_size_bytes: usize,
) -> Result<BatchWriteRequest, ApiError> {
    match (request.put_request, request.delete_request) {
        (Some(put), None) => {
            let item = items::attributes(put.item.unwrap_or_default())?;
            items::check_size(&item, request_size_bytes)?;
            Ok(BatchWriteRequest::Put(item))
        }
        (None, Some(delete)) => {
            Ok(BatchWriteRequest::Delete(items::attributes(delete.key.unwrap_or_default())?))
        }
        (None, None) | (Some(_), Some(_)) => Err(batch::not_one_write()),
    }
}

fn render(names: &[String], outcome: &BatchWriteOutcome, returns: ItemsWriteReturns) -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("UnprocessedItems").object(|writer| {
            for (name, table) in names.iter().zip(&outcome.tables) {
                if !table.unprocessed.is_empty() {
                    writer.name(name).array(&table.unprocessed, write_request);
                }
            }
        });
        if returns.collection_metrics {
            let collections = names.iter().zip(&outcome.tables).flat_map(|(name, table)| {
                let named = move |collection| (Cow::Borrowed(name.as_str()), collection);
                table.collections.iter().map(named)
            });
            write_item_collections_member(writer, collections);
        }
        let consumed = outcome.tables.iter().map(|table| &table.consumed);
        let consumed = names.iter().map(|name| Cow::Borrowed(name.as_str())).zip(consumed);
        write_consumed_list_member(writer, consumed, returns.capacity);
    });
    Reply(writer.finish())
}

/// A request that met a limit of throughput, ready to send again.
fn write_request(writer: &mut Writer, request: &BatchWriteRequest) {
    let (kind, member, attributes) = match request {
        BatchWriteRequest::Put(item) => ("PutRequest", "Item", item),
        BatchWriteRequest::Delete(key) => ("DeleteRequest", "Key", key),
    };
    writer.object(|writer| {
        writer.name(kind).object(|writer| write_attributes(writer.name(member), attributes));
    });
}
