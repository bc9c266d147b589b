//! Operations of the API, from a JSON body to a JSON answer.

use zenobe_api::Operation;

use crate::case::Case;
use crate::database::Backend::{EmbeddedMemtable, EmbeddedTables, Memory};
use crate::database::Database;
use crate::requests;

pub fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "get-item.memory",
            iterations: 512,
            prepare: || Database::load(Memory).repeat(Operation::GetItem, requests::get_item()),
        },
        Case {
            name: "get-item.memtable",
            iterations: 512,
            prepare: || {
                Database::load(EmbeddedMemtable).repeat(Operation::GetItem, requests::get_item())
            },
        },
        Case {
            name: "get-item.tables",
            iterations: 512,
            prepare: || {
                Database::load(EmbeddedTables).repeat(Operation::GetItem, requests::get_item())
            },
        },
        Case {
            name: "put-item.memory",
            iterations: 512,
            prepare: || Database::load(Memory).repeat(Operation::PutItem, requests::put_item()),
        },
        Case {
            name: "put-item.embedded",
            iterations: 512,
            prepare: || {
                Database::load(EmbeddedMemtable).repeat(Operation::PutItem, requests::put_item())
            },
        },
        Case {
            name: "update-item.memory",
            iterations: 512,
            prepare: || {
                Database::load(Memory).repeat(Operation::UpdateItem, requests::update_item())
            },
        },
        Case {
            name: "update-item.embedded",
            iterations: 512,
            prepare: || {
                Database::load(EmbeddedMemtable)
                    .repeat(Operation::UpdateItem, requests::update_item())
            },
        },
        Case {
            name: "query-25.memory",
            iterations: 128,
            prepare: || Database::load(Memory).repeat(Operation::Query, requests::query()),
        },
        Case {
            name: "query-25.tables",
            iterations: 128,
            prepare: || Database::load(EmbeddedTables).repeat(Operation::Query, requests::query()),
        },
    ]
}
