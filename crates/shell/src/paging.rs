//! The pages of a statement, one after the other.

use serde_json::{Value, json};

use crate::error::ShellError;
use crate::session::Session;
use crate::value::Row;

/// The pages of one statement.
pub struct Pages {
    request: Value,
    /// How many rows the next page may read; `None` for a statement that writes.
    limit: Option<usize>,
    is_last: bool,
    pub units: f64,
    pub rows: usize,
}

impl Pages {
    pub fn of_write(statement: &str) -> Pages {
        let request = json!({ "Statement": statement, "ReturnConsumedCapacity": "TOTAL" });
        Pages { request, limit: None, is_last: false, units: 0.0, rows: 0 }
    }

    /// `rows_wanted` bounds what the first page reads, so that a glance at a large table stays
    /// cheap.
    pub fn of_read(statement: &str, consistent: bool, rows_wanted: Option<usize>) -> Pages {
        let mut pages = Pages::of_write(statement);
        pages.limit = rows_wanted.map(|rows| rows.max(1));
        if consistent {
            pages.request["ConsistentRead"] = true.into();
        }
        pages
    }

    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// The rows of the next page. A filter may drop most rows, so each page reads twice as much as
    /// the one before.
    pub fn next(&mut self, session: &mut Session) -> Result<Vec<Row>, ShellError> {
        if let Some(limit) = self.limit {
            self.request["Limit"] = limit.min(i32::MAX as usize).into();
            self.limit = Some(limit.saturating_mul(2));
        }
        let mut page = session.call("ExecuteStatement", &self.request)?;
        self.units += page["ConsumedCapacity"]["CapacityUnits"].as_f64().unwrap_or(0.0);
        match page["NextToken"].take() {
            Value::Null => self.is_last = true,
            token => self.request["NextToken"] = token,
        }
        let Value::Array(items) = page["Items"].take() else { return Ok(Vec::new()) };
        let rows = items.into_iter().filter_map(|item| match item {
            Value::Object(row) => Some(row),
            _ => None,
        });
        let rows: Vec<Row> = rows.collect();
        self.rows += rows.len();
        Ok(rows)
    }
}
