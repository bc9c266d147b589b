//! Operations on tables: one file each, and the rules that several of them share.

mod contributor_insights;
mod create;
mod delete;
mod describe;
mod encryption;
mod index_changes;
mod list;
mod reset;
pub(crate) mod stream_label;
mod tags;
mod throughput;
mod time_to_live;
mod update;

pub use contributor_insights::InsightsUpdate;
pub(crate) use delete::prefixes_of_table;
pub(crate) use index_changes::prune_attribute_types;
pub use reset::TableReset;

use crate::schema::TableDescription;

/// A table before and after an UpdateTable. DynamoDB's response shows mostly the earlier state.
#[derive(Debug, Clone)]
pub struct TableUpdate {
    pub before: TableDescription,
    pub after: TableDescription,
}
