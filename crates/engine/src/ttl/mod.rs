//! Time to live: when items expire, and their removal.
//!
//! While the setting is on, every change of an item maintains an entry in the expiry index
//! ([`crate::change`]), which is ordered by time: nothing is read until something is due. Items
//! older than the setting get their entries in the background ([`expiry_backfill`]). Expired items are
//! deleted in small batches ([`sweep`]) like any other write, and only if they are still expired.
//! [`crate::background`] says which engine does this: the one with the lease, unless its clock has jumped.

pub(crate) mod expiry_backfill;
pub(crate) mod sweep;

use zenobe_value::{ItemRef, ValueView};

use crate::schema::TableDefinition;

/// Items that expired longer ago than this are kept: DynamoDB assumes that such a time is a
/// mistake.
const AGE_S_MAX: u64 = 5 * 365 * 24 * 60 * 60;

/// The second (since the epoch) in which an item expires: the integral part of a top-level number.
/// `None` if the table has no such setting, or if the item has no such number, or if it is negative
/// or out of range.
pub(crate) fn expires_at_s(definition: &TableDefinition, item: ItemRef<'_>) -> Option<u64> {
    let attribute = definition.ttl_attribute.as_deref()?;
    let ValueView::N(text) = item.get(attribute)?.view() else { return None };
    // The text is the number's plain form: digits, possibly with a sign or a fraction.
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    let second = whole.parse::<i64>().ok().filter(|_| !text.starts_with('-'))?;
    u64::try_from(second).ok()
}

/// Whether an item that expires in this second must be deleted now.
pub(crate) fn is_due(expires_at_s: u64, now_s: u64) -> bool {
    (oldest_due_s(now_s)..now_s).contains(&expires_at_s)
}

fn oldest_due_s(now_s: u64) -> u64 {
    now_s.saturating_sub(AGE_S_MAX)
}
