//! The planner: which reads answer a SELECT.
//!
//! A read is keyed if every alternative of the WHERE clause pins the partition key of the table or
//! index with `=` or IN. Each alternative then becomes the read of one item or of a range of one
//! partition ([`branch`]), and its filter holds what keys can't express. Anything else scans.

mod branch;
mod order;
mod range;

use zenobe_engine::schema::{IndexDefinition, IndexKind, IndexStatus, KeySchema, TableDefinition};
use zenobe_expression::{Condition, KeyCondition, Projection};
use zenobe_value::Attributes;

use self::branch::{Branch, LoweredConditions};
use self::order::ReadOrder;
use super::BoundSelect;
use crate::error::ApiError;
use crate::java_set;
use crate::messages::partiql as messages;

/// Plans with more reads than this are rejected.
const READS_MAX: usize = 50;

#[derive(Debug)]
pub(crate) struct ReadPlan {
    pub(crate) index: Option<String>,
    pub(crate) projection: Option<Projection>,
    pub(crate) access: AccessPath,
}

#[derive(Debug)]
pub(crate) enum AccessPath {
    /// In result order. At least one.
    Reads(Vec<KeyedRead>),
    Scan {
        filter: Option<Condition>,
    },
}

#[derive(Debug)]
pub(crate) enum KeyedRead {
    /// The whole key is known, and there is no other condition.
    Item {
        key: Attributes,
    },
    Range {
        conditions: Vec<KeyCondition>,
        forward: bool,
        filter: Option<Condition>,
    },
}

impl ReadPlan {
    /// Whether the statement reads all of its table or index, which is what the policy key
    /// `dynamodb:FullTableScan` tests.
    pub(crate) fn is_full_table_scan(&self) -> bool {
        matches!(self.access, AccessPath::Scan { .. })
    }

    /// The key, if the statement reads one item of the table without other conditions.
    pub(crate) fn single_key(&self) -> Option<&Attributes> {
        match &self.access {
            AccessPath::Reads(reads) => match &reads[..] {
                [KeyedRead::Item { key }] => Some(key),
                _ => None,
            },
            AccessPath::Scan { .. } => None,
        }
    }
}

/// Why a SELECT can't be planned.
#[derive(Debug)]
pub(crate) enum PlanFault {
    /// A key attribute equals a value of another type. Transactions have their own text for this.
    KeyType {
        attribute: String,
    },
    Refused(ApiError),
}

impl PlanFault {
    pub(crate) fn error(self) -> ApiError {
        match self {
            PlanFault::KeyType { attribute } => messages::key_type(&attribute),
            PlanFault::Refused(error) => error,
        }
    }
}

impl From<ApiError> for PlanFault {
    fn from(error: ApiError) -> PlanFault {
        PlanFault::Refused(error)
    }
}

/// Plans a SELECT on a table, with checks in DynamoDB's order.
pub(crate) fn plan(
    definition: &TableDefinition,
    bound: &BoundSelect<'_>,
    consistent: bool,
) -> Result<ReadPlan, PlanFault> {
    let index = bound.select.source.index.as_deref();
    let index = index.map(|name| find_index(definition, name, consistent)).transpose()?;
    let keys = index.map_or(&definition.keys, |index| &index.keys);
    if keys.partition.len() > 1 || keys.sort.len() > 1 {
        return Err(messages::multi_attribute_keys().into());
    }
    if let Some(fault) = bound.function_column() {
        return Err(fault.into());
    }
    let order = ReadOrder::check(&bound.select.order, keys)?;
    let source = SelectSource { definition, index, keys };
    let access = match &bound.predicate {
        Some(predicate) if predicate.pins(source.partition()) => {
            AccessPath::Reads(keyed_reads(source, branch::expand(predicate, keys)?, order)?)
        }
        predicate => {
            order.check_unkeyed()?;
            AccessPath::Scan { filter: predicate.as_ref().map(|predicate| predicate.lower()) }
        }
    };
    let projection = bound.select.projection();
    Ok(ReadPlan { index: index.map(|index| index.name.clone()), projection, access })
}

/// What a SELECT reads.
#[derive(Clone, Copy)]
struct SelectSource<'t> {
    definition: &'t TableDefinition,
    index: Option<&'t IndexDefinition>,
    keys: &'t KeySchema,
}

impl<'t> SelectSource<'t> {
    fn partition(self) -> &'t str {
        &self.keys.partition[0].name
    }
}

fn find_index<'t>(
    definition: &'t TableDefinition,
    name: &str,
    consistent: bool,
) -> Result<&'t IndexDefinition, ApiError> {
    let index = definition.index(name).filter(|index| index.status != IndexStatus::Deleting);
    let index = index.ok_or_else(messages::index_not_found)?;
    if consistent && index.kind == IndexKind::Global {
        return Err(messages::consistent_read_on_global_index());
    }
    Ok(index)
}

fn keyed_reads(
    source: SelectSource<'_>,
    branches: Vec<Branch<'_>>,
    order: ReadOrder,
) -> Result<Vec<KeyedRead>, ApiError> {
    range::check_overlaps(&branches)?;
    if branches.len() > READS_MAX {
        return Err(messages::too_many_reads());
    }
    if let Some(index) = source.index {
        check_filters(source, index, &branches)?;
    }
    let branches = order.arrange(branches)?;
    let forward = order.forward();
    let is_table = source.index.is_none();
    let mut lowered = LoweredConditions::default();
    Ok(branches
        .into_iter()
        .map(|branch| branch.into_read(source.keys, is_table, forward, &mut lowered))
        .collect())
}

/// A keyed read of an index is rejected if every alternative filters by an attribute that the index
/// doesn't store. The error names the attributes of the alternative with the highest partition
/// value.
fn check_filters(
    source: SelectSource<'_>,
    index: &IndexDefinition,
    branches: &[Branch<'_>],
) -> Result<(), ApiError> {
    let mut named: Option<(&[u8], Vec<String>)> = None;
    for branch in branches {
        let missing = branch.filtered_attributes(|name| !source.definition.projects(index, name));
        if missing.is_empty() {
            return Ok(());
        }
        if named.as_ref().is_none_or(|(highest, _)| branch.partition_bytes() > *highest) {
            named = Some((branch.partition_bytes(), missing));
        }
    }
    match named {
        None => Ok(()),
        Some((_, mut attributes)) => {
            java_set::sort(&mut attributes);
            Err(messages::filter_not_projected(&index.name, &attributes.join(", ")))
        }
    }
}
