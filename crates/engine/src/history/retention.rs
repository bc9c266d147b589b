//! How long a table's past is kept.

use super::DAY_MS;

pub(super) fn period_ms(period_days: u32) -> u64 {
    u64::from(period_days) * DAY_MS
}

/// The beginning of the period that ends at a time. What is older is not kept.
pub(super) fn horizon_ms(period_days: u32, until_ms: u64) -> u64 {
    until_ms.saturating_sub(period_ms(period_days))
}
