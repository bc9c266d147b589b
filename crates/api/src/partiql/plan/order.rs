//! The order of results: ORDER BY, and the order of reads that it implies.

use zenobe_engine::schema::KeySchema;
use zenobe_expression::partiql::OrderKey;

use super::branch::{Branch, by_partition};
use crate::error::ApiError;
use crate::messages::partiql as messages;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadOrder {
    is_given: bool,
    /// Whether partitions descend, if ORDER BY starts with the partition key.
    partitions_descend: Option<bool>,
    sort_descends: bool,
}

impl ReadOrder {
    /// ORDER BY accepts only keys. A sort key that it does not name descends.
    pub(super) fn check(order: &[OrderKey], keys: &KeySchema) -> Result<ReadOrder, ApiError> {
        let is_key = |key: &OrderKey| key.path.is_top_level() && keys.contains(key.path.root());
        if let Some(other) = order.iter().find(|key| !is_key(key)) {
            return Err(messages::order_attribute(&other.path.to_string()));
        }
        let partition = &keys.partition[0].name;
        let is_partition = |key: &&OrderKey| key.path.root() == partition;
        let sort = order.iter().find(|key| !is_partition(key));
        Ok(ReadOrder {
            is_given: !order.is_empty(),
            partitions_descend: order.first().filter(is_partition).map(|key| key.descending),
            sort_descends: !order.is_empty() && sort.is_none_or(|key| key.descending),
        })
    }

    pub(super) fn check_unkeyed(self) -> Result<(), ApiError> {
        if self.is_given { Err(messages::order_without_partition()) } else { Ok(()) }
    }

    pub(super) fn forward(self) -> bool {
        !self.sort_descends
    }

    /// The branches in read order: partition by partition, and in each the ranges one after the
    /// other. Branches of a partition without ranges to distinguish them become one.
    pub(super) fn arrange(self, branches: Vec<Branch<'_>>) -> Result<Vec<Branch<'_>>, ApiError> {
        if branches.len() == 1 {
            return Ok(branches);
        }
        let mut partitions = by_partition(branches);
        if partitions.len() > 1 && self.is_given {
            let descends = self.partitions_descend.ok_or_else(messages::order_of_partitions)?;
            partitions.sort_by(|one, two| one[0].partition_bytes().cmp(two[0].partition_bytes()));
            if descends {
                partitions.reverse();
            }
        }
        let mut arranged = Vec::with_capacity(partitions.len());
        for mut partition in partitions {
            if partition.len() > 1 && partition.iter().any(Branch::is_unranged) {
                arranged.extend(Branch::merged(partition));
                continue;
            }
            partition.sort_by_cached_key(|branch| branch.sort.bytes());
            if self.sort_descends {
                partition.reverse();
            }
            arranged.extend(partition);
        }
        Ok(arranged)
    }
}
