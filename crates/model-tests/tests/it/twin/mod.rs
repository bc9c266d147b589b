//! A database of plain maps, as simple as the specification allows: every result is computed from
//! all items, every time.

pub mod condition;
pub mod fault;
pub mod hash;
pub mod life;
pub mod page;
pub mod projection;
pub mod route;
pub mod schema;
pub mod table;
pub mod transaction;
pub mod update;
pub mod value;
pub mod write;

use std::collections::BTreeMap;

use self::life::Stream;
use self::table::Table;
use self::transaction::TokenMemory;

/// The whole state: the tables by name, and the transactions that a token may repeat.
#[derive(Debug, Clone, Default)]
pub struct Twin {
    pub tables: BTreeMap<String, Table>,
    /// Streams of deleted tables, by table name.
    pub past_streams: BTreeMap<String, Vec<Stream>>,
    pub tokens: BTreeMap<String, TokenMemory>,
    pub now_ms: u64,
}
