//! What to send: the workloads, the shape of their tables, and the operations that a report
//! distinguishes.

mod answer;
mod generator;
mod item;

use std::fmt;
use std::str::FromStr;

use crate::KeyDistribution;
use crate::http::Call;

pub use answer::is_throttling;
pub(crate) use answer::{
    UNPROCESSED, error_message, error_name, item_count, last_evaluated_key, unprocessed,
};
pub(crate) use generator::{Generator, Step, Surroundings};
pub(crate) use item::{ItemWriter, Key, write_number};

/// Items of one partition in a table with a sort key.
pub(crate) const PARTITION_ITEMS: u64 = 100;
pub(crate) const PAGE_ITEMS: u64 = 25;
/// The maximum of BatchWriteItem.
pub(crate) const BATCH_ITEMS: usize = 25;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// GetItem, eventually consistent.
    Get,
    /// PutItem that overwrites loaded items.
    Put,
    /// UpdateItem with arithmetic and a condition that holds.
    Update,
    /// PutItem of new items, on condition that they do not exist. The table grows.
    PutIfAbsent,
    /// PutItem that overwrites loaded items, on a condition about their version that holds.
    PutIfVersion,
    /// Query for a page of 25 items of one partition.
    Query,
    /// Scan of the whole table, over and over, in pages of 1 MB. Each connection scans its own
    /// segment.
    Scan,
    /// BatchWriteItem of 25 items.
    BatchWrite,
    /// BatchGetItem of 25 items.
    BatchGet,
    /// TransactWriteItems of a put and a conditional update.
    Transact,
    /// UpdateItem that adds to the same item from all connections.
    Counter,
    /// PutItem into a table with an index of all attributes and a stream of both images.
    PutIndexed,
    /// ExecuteStatement: a SELECT by key, like GetItem.
    Select,
    /// ExecuteStatement: an INSERT of new items. The table grows.
    Insert,
    /// ExecuteStatement: a SELECT of a page of 25 items of one partition, like Query.
    SelectPage,
    /// Half reads, half updates.
    YcsbA,
    /// 95 % reads, 5 % updates.
    YcsbB,
    /// Only reads.
    YcsbC,
    /// 95 % reads of the items inserted last, 5 % inserts.
    YcsbD,
    /// 95 % queries of 1 to 100 items, 5 % inserts.
    YcsbE,
    /// Half reads, half reads followed by an update.
    YcsbF,
}

impl Workload {
    pub const ALL: [Workload; 21] = [
        Workload::Get,
        Workload::Put,
        Workload::Update,
        Workload::PutIfAbsent,
        Workload::PutIfVersion,
        Workload::Query,
        Workload::Scan,
        Workload::BatchWrite,
        Workload::BatchGet,
        Workload::Transact,
        Workload::Counter,
        Workload::PutIndexed,
        Workload::Select,
        Workload::Insert,
        Workload::SelectPage,
        Workload::YcsbA,
        Workload::YcsbB,
        Workload::YcsbC,
        Workload::YcsbD,
        Workload::YcsbE,
        Workload::YcsbF,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Workload::Get => "get",
            Workload::Put => "put",
            Workload::Update => "update",
            Workload::PutIfAbsent => "put-if-absent",
            Workload::PutIfVersion => "put-if-version",
            Workload::Query => "query",
            Workload::Scan => "scan",
            Workload::BatchWrite => "batch-write",
            Workload::BatchGet => "batch-get",
            Workload::Transact => "transact",
            Workload::Counter => "counter",
            Workload::PutIndexed => "put-indexed",
            Workload::Select => "select",
            Workload::Insert => "insert",
            Workload::SelectPage => "select-page",
            Workload::YcsbA => "ycsb-a",
            Workload::YcsbB => "ycsb-b",
            Workload::YcsbC => "ycsb-c",
            Workload::YcsbD => "ycsb-d",
            Workload::YcsbE => "ycsb-e",
            Workload::YcsbF => "ycsb-f",
        }
    }

    /// A one-line description.
    pub fn description(self) -> &'static str {
        match self {
            Workload::Get => "GetItem, eventually consistent",
            Workload::Put => "PutItem over the loaded items",
            Workload::Update => "UpdateItem with arithmetic and a condition that holds",
            Workload::PutIfAbsent => "PutItem of new items if they do not exist; the table grows",
            Workload::PutIfVersion => {
                "PutItem over loaded items if their version fits, which it does"
            }
            Workload::Query => "Query for a page of 25 items of a partition",
            Workload::Scan => "Scan over and over, a segment per connection",
            Workload::BatchWrite => "BatchWriteItem of 25 items",
            Workload::BatchGet => "BatchGetItem of 25 items",
            Workload::Transact => "TransactWriteItems of a put and a conditional update",
            Workload::Counter => "UpdateItem that adds to one item on all connections",
            Workload::PutIndexed => "PutItem with an index of all attributes and a stream",
            Workload::Select => "PartiQL: SELECT by the key, eventually consistent",
            Workload::Insert => "PartiQL: INSERT of new items; the table grows",
            Workload::SelectPage => "PartiQL: SELECT of a page of 25 items of a partition",
            Workload::YcsbA => "50 % GetItem, 50 % UpdateItem; zipfian keys",
            Workload::YcsbB => "95 % GetItem, 5 % UpdateItem; zipfian keys",
            Workload::YcsbC => "GetItem; zipfian keys",
            Workload::YcsbD => "95 % GetItem of the latest items, 5 % PutItem of new ones",
            Workload::YcsbE => "95 % Query of 1 to 100 items, 5 % PutItem of new ones",
            Workload::YcsbF => "50 % GetItem, 50 % GetItem and UpdateItem of the same item",
        }
    }

    pub fn shape(self) -> Shape {
        match self {
            Workload::Query | Workload::SelectPage | Workload::YcsbE => Shape::Sorted,
            Workload::PutIndexed => Shape::Indexed,
            _ => Shape::Plain,
        }
    }

    pub fn default_keys(self) -> KeyDistribution {
        match self {
            Workload::YcsbA
            | Workload::YcsbB
            | Workload::YcsbC
            | Workload::YcsbE
            | Workload::YcsbF => KeyDistribution::ZIPFIAN,
            Workload::YcsbD => KeyDistribution::Latest,
            Workload::Counter => KeyDistribution::Single,
            _ => KeyDistribution::Uniform,
        }
    }

    /// The fewest items that its requests need.
    pub(crate) fn items_min(self) -> u64 {
        match self {
            Workload::BatchGet | Workload::BatchWrite => BATCH_ITEMS as u64,
            Workload::Transact => 2,
            _ => 1,
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWorkload(String);

impl std::error::Error for UnknownWorkload {}

impl fmt::Display for UnknownWorkload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Workload::ALL.iter().map(|workload| workload.name()).collect();
        write!(out, "{:?} is not a workload; there are {}", self.0, names.join(", "))
    }
}

impl FromStr for Workload {
    type Err = UnknownWorkload;

    fn from_str(text: &str) -> Result<Workload, UnknownWorkload> {
        let mut all = Workload::ALL.into_iter();
        all.find(|workload| workload.name() == text).ok_or_else(|| UnknownWorkload(text.to_owned()))
    }
}

/// The shape of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A partition key.
    Plain,
    /// A partition key and a sort key, with a hundred items per partition.
    Sorted,
    /// A partition key, a global index of all attributes, and a stream of new and old images.
    Indexed,
}

impl Shape {
    pub fn name(self) -> &'static str {
        match self {
            Shape::Plain => "plain",
            Shape::Sorted => "sorted",
            Shape::Indexed => "indexed",
        }
    }

    /// Each shape has a table of its own, so changing the workload does not force a reload.
    pub fn default_table(self) -> &'static str {
        match self {
            Shape::Plain => "zenobe-bench",
            Shape::Sorted => "zenobe-bench-sorted",
            Shape::Indexed => "zenobe-bench-indexed",
        }
    }

    /// The size of an item without padding.
    pub(crate) fn item_bytes_min(self) -> usize {
        let plain = "pkuser#000000000000version0000000visits00active1fill".len();
        match self {
            Shape::Plain => plain,
            Shape::Sorted => plain + "skitem#000000".len(),
            Shape::Indexed => plain + "categorycategory#000".len(),
        }
    }
}

/// What a report measures separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MeasuredOperation {
    Call(Call),
    /// A GetItem and an UpdateItem, measured as one.
    ReadModifyWrite,
}

impl MeasuredOperation {
    /// Each at its [`MeasuredOperation::index`].
    pub const ALL: [MeasuredOperation; Call::ALL.len() + 1] = {
        let mut all = [MeasuredOperation::ReadModifyWrite; Call::ALL.len() + 1];
        let mut index = 0;
        while index < Call::ALL.len() {
            all[index] = MeasuredOperation::Call(Call::ALL[index]);
            index += 1;
        }
        all
    };

    #[inline]
    pub(crate) fn index(self) -> usize {
        match self {
            MeasuredOperation::Call(call) => call as usize,
            MeasuredOperation::ReadModifyWrite => Call::ALL.len(),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            MeasuredOperation::Call(call) => call.name(),
            MeasuredOperation::ReadModifyWrite => "ReadModifyWrite",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_listed_by_their_indexes() {
        for (index, operation) in MeasuredOperation::ALL.into_iter().enumerate() {
            assert_eq!(operation.index(), index);
        }
    }

    #[test]
    fn workloads_are_read_by_their_names() {
        for workload in Workload::ALL {
            assert_eq!(workload.name().parse(), Ok(workload));
        }
        let fault = "gett".parse::<Workload>().unwrap_err().to_string();
        assert!(fault.contains("\"gett\"") && fault.contains("ycsb-f"), "{fault}");
    }
}
