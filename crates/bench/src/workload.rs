//! The requests that are sent, identical for every subject.

use rand::RngExt;
use rand::rngs::SmallRng;

/// A table without anything special.
pub const TABLE: &str = "bench";
/// The same with a stream of new and old images.
pub const STREAMED_TABLE: &str = "bench-streamed";

/// With the key and the JSON around it a response of about this size results.
const ITEM_SIZE_BYTES: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    pub operation: Operation,
    pub connections: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    GetItem,
    PutItem,
}

impl Operation {
    pub fn name(self) -> &'static str {
        match self {
            Operation::GetItem => "GetItem",
            Operation::PutItem => "PutItem",
        }
    }
}

impl Workload {
    pub fn get_item(connections: usize) -> Workload {
        Workload { operation: Operation::GetItem, connections }
    }

    pub fn put_item(connections: usize) -> Workload {
        Workload { operation: Operation::PutItem, connections }
    }

    /// Renders the next request's body: a uniformly random one of the loaded keys.
    pub fn write_body(&self, table: &str, random: &mut SmallRng, items: u64, body: &mut Vec<u8>) {
        let key = key(random.random_range(0..items));
        match self.operation {
            Operation::GetItem => body.extend_from_slice(
                format!(r#"{{"TableName":"{table}","Key":{{"pk":{{"S":"{key}"}}}}}}"#).as_bytes(),
            ),
            Operation::PutItem => write_put(table, &key, random.random(), body),
        }
    }
}

pub fn key(number: u64) -> String {
    format!("user#{number:012}")
}

/// A PutItem body for `key`; `version` makes each write change the item.
pub fn write_put(table: &str, key: &str, version: u32, body: &mut Vec<u8>) {
    let fill = "x".repeat(fill_size_bytes());
    body.extend_from_slice(
        format!(
            r#"{{"TableName":"{table}","Item":{{"pk":{{"S":"{key}"}},"version":{{"N":"{version}"}},"active":{{"BOOL":true}},"fill":{{"S":"{fill}"}}}}}}"#
        )
        .as_bytes(),
    );
}

pub fn fill_size_bytes() -> usize {
    ITEM_SIZE_BYTES - "pkuser#000000000000versionNNNNNactive1fill".len()
}
