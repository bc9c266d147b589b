//! Scan.

use zenobe_engine::command::{PageRequest, RuleSet, Scan, Segment, Select, TableName};
use zenobe_engine::error::{Error, PageError};
use zenobe_expression::ExpressionKind;

use super::enumerations::{ReturnCapacity, SELECT};
use super::page::{self, Selected};
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::attribute_value::WireAttributes;
use crate::json::decode::{OrderedMap, request, shape};
use crate::legacy::conditions::{
    ConditionalOperator, UncheckedCondition, WireCondition, conditional_operator, with_operators,
};
use crate::legacy::{attributes_to_get, filters};
use crate::messages;
use crate::parameters::expressions::{
    Placeholders, check_names_are_used, check_not_mixed, check_values_are_used,
};
use crate::parameters::returns::return_capacity;
use crate::{Context, Reply, Wording};

const TOTAL_SEGMENTS_MAX: i64 = 1_000_000;

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let mut input: ScanInput = request(body)?;
    let constrained = constrained(&mut input)?;
    let table_name = input.table_name.take();
    let table = context.item_table(table_name.as_deref())?;
    let (select, capacity) = (constrained.select, constrained.capacity);
    let command = lowered(table, input, constrained)?;
    let outcome = context.reads().scan(RuleSet::Expressions, &command).await;
    let outcome = outcome.map_err(|error| context.items(worded(context, &command, error)))?;
    Ok(page::render(table_name.as_deref().unwrap_or_default(), &outcome, select, capacity))
}

shape! {
    struct ScanInput {
        "TableName" => table_name: String,
        "IndexName" => index_name: String,
        "AttributesToGet" => attributes_to_get: Vec<String>,
        "Limit" => limit: i32,
        "Select" => select: String,
        "ScanFilter" => scan_filter: OrderedMap<WireCondition>,
        "ConditionalOperator" => conditional_operator: String,
        "ExclusiveStartKey" => exclusive_start_key: WireAttributes,
        "ReturnConsumedCapacity" => return_consumed_capacity: String,
        "TotalSegments" => total_segments: i32,
        "Segment" => segment: i32,
        "ProjectionExpression" => projection_expression: String,
        "FilterExpression" => filter_expression: String,
        "ExpressionAttributeNames" => expression_attribute_names: OrderedMap<String>,
        "ExpressionAttributeValues" => expression_attribute_values: WireAttributes,
        "ConsistentRead" => consistent_read: bool,
    }
}

/// The constrained members, as narrower types.
struct Constrained {
    select: Option<Select>,
    capacity: ReturnCapacity,
    conditional_operator: Option<ConditionalOperator>,
    scan_filter: Option<Vec<UncheckedCondition>>,
}

fn constrained(input: &mut ScanInput) -> Result<Constrained, ApiError> {
    let mut violations = Violations::new();
    range(input.limit, "limit", 1, i64::MAX, &mut violations);
    let capacity = return_capacity(input.return_consumed_capacity.as_deref(), &mut violations);
    let names = input.attributes_to_get.as_deref();
    attributes_to_get::check_length(names, "attributesToGet", &mut violations);
    range(input.segment, "segment", 0, TOTAL_SEGMENTS_MAX - 1, &mut violations);
    let select = violations.enumeration(input.select.as_deref(), "select", &SELECT);
    let scan_filter = input.scan_filter.take();
    let scan_filter =
        scan_filter.map(|filter| with_operators(filter, "scanFilter", &mut violations));
    let operator = input.conditional_operator.as_deref();
    let conditional_operator = conditional_operator(operator, &mut violations);
    range(input.total_segments, "totalSegments", 1, TOTAL_SEGMENTS_MAX, &mut violations);
    violations.table_name(input.table_name.as_deref());
    if let Some(name) = &input.index_name {
        violations.name(name, "indexName");
    }
    violations.finish()?;
    Ok(Constrained { select, capacity, conditional_operator, scan_filter })
}

fn range(value: Option<i32>, path: &str, min: i64, max: i64, violations: &mut Violations) {
    if let Some(value) = value {
        violations.range(i64::from(value), path, min, max);
    }
}

/// The classic front end has one text for every fault of a table's start key.
fn worded(context: &Context<'_>, command: &Scan, error: Error) -> Error {
    match (context.options.wording, error) {
        (Wording::Classic, Error::Page(PageError::StartKeyInvalid)) if command.index.is_none() => {
            PageError::StartKeyMismatch { table_key: true }.into()
        }
        (_, error) => error,
    }
}

fn lowered(table: TableName, input: ScanInput, constrained: Constrained) -> Result<Scan, ApiError> {
    check_combination(&input, &constrained)?;
    let selected = Selected {
        select: constrained.select,
        attributes_to_get: input.attributes_to_get.is_some(),
        projection_expression: input.projection_expression.is_some(),
        index: input.index_name.is_some(),
    };
    attributes_to_get::check_distinct(input.attributes_to_get.as_deref())?;
    let legacy_filter =
        filters::condition(constrained.scan_filter, constrained.conditional_operator)?;
    let start_key = page::start_key(input.exclusive_start_key)?;
    let segment = segment(input.segment, input.total_segments)?;
    let names = input.expression_attribute_names;
    let placeholders = Placeholders::check(names, input.expression_attribute_values)?;
    let mut expressions = placeholders.expressions();
    let filter = expressions.filter(input.filter_expression.as_deref())?;
    let projection = expressions.projection(input.projection_expression.as_deref())?;
    expressions.finish()?;
    selected.check(messages::page::scan_projection_required)?;
    let legacy_projection = input.attributes_to_get.map(attributes_to_get::projection);
    let page = PageRequest {
        filter: filter.or(legacy_filter),
        projection: projection.or(legacy_projection),
        select: constrained.select,
        limit: input.limit.map(i32::unsigned_abs),
        start_key,
        consistent: input.consistent_read.unwrap_or(false),
    };
    Ok(Scan { table, index: input.index_name, segment, page })
}

fn check_combination(input: &ScanInput, constrained: &Constrained) -> Result<(), ApiError> {
    let legacy = [
        ("AttributesToGet", input.attributes_to_get.is_some()),
        ("ScanFilter", constrained.scan_filter.is_some()),
        ("ConditionalOperator", constrained.conditional_operator.is_some()),
    ];
    let filter = (ExpressionKind::Filter, input.filter_expression.is_some());
    let projection = (ExpressionKind::Projection, input.projection_expression.is_some());
    let expressions = [projection, filter];
    check_not_mixed(&legacy, &expressions)?;
    check_names_are_used(input.expression_attribute_names.as_ref(), &expressions)?;
    check_values_are_used(input.expression_attribute_values.as_ref(), &[filter])
}

/// Segment and TotalSegments must come together. Their ranges are constraints and already checked.
fn segment(segment: Option<i32>, total: Option<i32>) -> Result<Option<Segment>, ApiError> {
    match (segment, total) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(messages::page::total_segments_required()),
        (None, Some(_)) => Err(messages::page::segment_required()),
        (Some(segment), Some(total)) if segment >= total => {
            Err(messages::page::segment_too_large(segment, total))
        }
        (Some(segment), Some(total)) => {
            Ok(Some(Segment { number: segment.unsigned_abs(), total: total.unsigned_abs() }))
        }
    }
}
