//! How answers name the tables of a transaction.

use std::borrow::Cow;

use zenobe_engine::command::TableName;
use zenobe_engine::schema::table_arn;

/// The ARNs by which a request names tables. The answer names these tables in the same way.
#[derive(Debug)]
pub(crate) struct TableArns(Vec<String>);

impl TableArns {
    /// The ARNs among the names that a request gives.
    pub(crate) fn among<'n>(given: impl Iterator<Item = &'n str>) -> TableArns {
        TableArns(given.filter(|name| name.starts_with("arn:")).map(str::to_owned).collect())
    }

    /// A table's name in the answer.
    pub(crate) fn shown<'t>(&self, table: &'t TableName) -> Cow<'t, str> {
        if self.0.is_empty() {
            return Cow::Borrowed(&table.name);
        }
        let arn = table_arn(&table.namespace, &table.name);
        if self.0.contains(&arn) { Cow::Owned(arn) } else { Cow::Borrowed(&table.name) }
    }
}
