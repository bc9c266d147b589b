//! Operations of the API, from a JSON body to a JSON response.

use zenobe_api::Operation::{
    BatchWriteItem, GetItem, PutItem, Query, TransactWriteItems, UpdateItem,
};

use crate::case::Case;
use crate::database::Backend::{EmbeddedMemtable, EmbeddedTables, Memory};
use crate::database::Database;
use crate::requests;

/// Declares cases: a name, how often it runs, and which requests go to which backend.
macro_rules! cases {
    ($($name:literal $iterations:literal: $backend:ident $operation:ident $bodies:ident;)*) => {
        vec![$(Case {
            name: $name,
            iterations: $iterations,
            prepare: || Database::load($backend).repeat($operation, requests::$bodies()),
        },)*]
    };
}

/// On the embedded store, one write at a time means a group commit of one: the most that a write
/// can cost.
pub fn cases() -> Vec<Case> {
    cases! {
        "get-item.memory" 512: Memory GetItem get_item;
        "get-item.memtable" 512: EmbeddedMemtable GetItem get_item;
        "get-item.tables" 512: EmbeddedTables GetItem get_item;
        "put-item.memory" 512: Memory PutItem put_item;
        "put-item.embedded" 512: EmbeddedMemtable PutItem put_item;
        "update-item.memory" 512: Memory UpdateItem update_item;
        "update-item.embedded" 512: EmbeddedMemtable UpdateItem update_item;
        "query-25.memory" 128: Memory Query query;
        "query-25.tables" 128: EmbeddedTables Query query;
        "transact-write-2.memory" 256: Memory TransactWriteItems transact_write;
        "transact-write-2.embedded" 256: EmbeddedMemtable TransactWriteItems transact_write;
        "batch-write-25.memory" 64: Memory BatchWriteItem batch_write;
        "batch-write-25.embedded" 64: EmbeddedMemtable BatchWriteItem batch_write;
    }
}
