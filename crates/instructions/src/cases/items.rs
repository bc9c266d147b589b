//! Operations of the API, from a JSON body to a JSON response.

use zenobe_api::Operation::{
    BatchWriteItem, GetItem, PutItem, Query, TransactWriteItems, UpdateItem,
};
use zenobe_engine::ThroughputMode::{Enforce, Off};

use crate::case::Case;
use crate::database::Backend::{EmbeddedMemtable, EmbeddedTables, Memory};
use crate::database::LoadedDatabase;
use crate::requests;

/// Declares cases: a name, how often it runs, and which requests go to which backend.
macro_rules! cases {
    ($($name:literal $iterations:literal: $load:expr, $operation:ident $bodies:ident;)*) => {
        vec![$(Case {
            name: $name,
            iterations: $iterations,
            prepare: || $load.repeat($operation, requests::$bodies()),
        },)*]
    };
}

/// On the embedded store, one write at a time means a group commit of one: the most that a write
/// can cost. Throughput is observed, which is the default, unless a name says otherwise.
pub fn cases() -> Vec<Case> {
    cases! {
        "get-item.memory" 512: LoadedDatabase::load(Memory), GetItem get_item;
        "get-item.off" 512: LoadedDatabase::load_metered(Memory, Off), GetItem get_item;
        "get-item.enforce" 512: LoadedDatabase::load_metered(Memory, Enforce), GetItem get_item;
        "get-item.throttled" 512: LoadedDatabase::load_exhausted(), GetItem get_item;
        "get-item.memtable" 512: LoadedDatabase::load(EmbeddedMemtable), GetItem get_item;
        "get-item.tables" 512: LoadedDatabase::load(EmbeddedTables), GetItem get_item;
        "put-item.memory" 512: LoadedDatabase::load(Memory), PutItem put_item;
        "put-item.off" 512: LoadedDatabase::load_metered(Memory, Off), PutItem put_item;
        "put-item.enforce" 512: LoadedDatabase::load_metered(Memory, Enforce), PutItem put_item;
        "put-item.throttled" 512: LoadedDatabase::load_exhausted(), PutItem put_item;
        "put-item.embedded" 512: LoadedDatabase::load(EmbeddedMemtable), PutItem put_item;
        "put-item.recovered" 512: LoadedDatabase::load_recovered(), PutItem put_item;
        "update-item.memory" 512: LoadedDatabase::load(Memory), UpdateItem update_item;
        "update-item.embedded" 512: LoadedDatabase::load(EmbeddedMemtable), UpdateItem update_item;
        "query-25.memory" 128: LoadedDatabase::load(Memory), Query query;
        "query-25.tables" 128: LoadedDatabase::load(EmbeddedTables), Query query;
        "transact-write-2.memory" 256: LoadedDatabase::load(Memory), TransactWriteItems transact_write;
        "transact-write-2.embedded" 256: LoadedDatabase::load(EmbeddedMemtable), TransactWriteItems transact_write;
        "batch-write-25.memory" 64: LoadedDatabase::load(Memory), BatchWriteItem batch_write;
        "batch-write-25.embedded" 64: LoadedDatabase::load(EmbeddedMemtable), BatchWriteItem batch_write;
    }
}
