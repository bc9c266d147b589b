//! How much the expressions of a request may compute together.

use std::cell::Cell;

use super::{Operand, Points};

/// What a series costs besides its points. Series without points take memory too.
const SERIES_COST: usize = 100;

/// Bounds memory: results are inputs of other expressions, so each of 40 short expressions can double
/// what the one before it has. Every copy and every new series is paid for before it is made.
#[derive(Debug)]
pub struct Budget(Cell<usize>);

impl Budget {
    pub fn new(values: usize) -> Budget {
        Budget(Cell::new(values))
    }

    /// Pays for series with this many points each.
    pub fn take(&self, series: usize, points: usize) -> Result<(), String> {
        let cost = points.saturating_add(SERIES_COST).saturating_mul(series);
        let left = self.0.get().checked_sub(cost).ok_or(
            "The expressions compute too many values; use fewer of them, a shorter time or longer periods",
        )?;
        self.0.set(left);
        Ok(())
    }

    pub fn copy(&self, points: &Points) -> Result<Points, String> {
        self.take(1, points.len())?;
        Ok(points.clone())
    }

    pub fn copy_all<'p>(
        &self,
        several: impl IntoIterator<Item = &'p Points>,
    ) -> Result<Operand, String> {
        let copies = several.into_iter().map(|points| self.copy(points));
        copies.collect::<Result<_, _>>().map(Operand::Array)
    }
}
