//! The value that all rows of a key make up.

use std::borrow::Cow;

use tokio_postgres::Row;
use zenobe_store::Value;

/// The first columns of every statement that reads values: `s, v, n, rev`.
const SLOT: usize = 0;
const VALUE: usize = 1;
const ADDED: usize = 2;
const REVISION: usize = 3;

/// A key as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Read {
    pub value: Option<Value>,
    /// The revision of its row, if there is one.
    pub revision: Option<i64>,
    /// Whether the revision identifies the value. That of a counter does not: additions don't touch its row.
    pub is_settled: bool,
}

impl Read {
    pub fn absent() -> Read {
        Read { value: None, revision: None, is_settled: true }
    }

    /// Combines all rows of a key, in any order.
    pub fn of<'r>(rows: impl Iterator<Item = &'r Row> + Clone) -> Read {
        let base = rows.clone().find(|row| slot(row) == 0);
        let Some(base) = base else {
            return Read::absent();
        };
        let revision = base.get(REVISION);
        let is_counter = rows.clone().any(|row| slot(row) != 0);
        let value = value_of(rows).map(|value| Value::copy_from_slice(&value));
        let is_settled = !is_counter && value.is_some();
        Read { value, revision: Some(revision), is_settled }
    }
}

fn slot(row: &Row) -> i16 {
    row.get(SLOT)
}

/// The value that the rows of one key make up, in any order.
pub fn value_of<'r>(rows: impl Iterator<Item = &'r Row> + Clone) -> Option<Cow<'r, [u8]>> {
    let base = rows.clone().find(|row| slot(row) == 0)?;
    let stored: Option<&[u8]> = base.get(VALUE);
    let revision: i64 = base.get(REVISION);
    // Additions to an earlier row of the key are void.
    let mut additions = rows
        .filter(|row| slot(row) != 0 && row.get::<_, i64>(REVISION) == revision)
        .map(|row| added(row.get(ADDED)))
        .peekable();
    if additions.peek().is_none() {
        return stored.map(Cow::Borrowed);
    }
    let begun = match stored {
        None => 0,
        // Nothing adds to a value that is not a counter. If there is such an addition anyway, the value wins.
        Some(bytes) => match bytes.try_into() {
            Ok(bytes) => i64::from_be_bytes(bytes),
            Err(_) => return stored.map(Cow::Borrowed),
        },
    };
    match additions.fold(begun, i64::wrapping_add) {
        0 => None,
        sum => Some(Cow::Owned(sum.to_be_bytes().to_vec())),
    }
}

/// Sums are stored beyond 64 bits, and wrap around when they are read.
fn added(text: Option<&str>) -> i64 {
    text.and_then(|text| text.parse::<i128>().ok()).unwrap_or(0) as i64
}
