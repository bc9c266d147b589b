//! The documents: `docs/benchmarks.md` and the chart in it.

mod chart;
mod markdown;
mod remarks;

pub use chart::draw;
pub use markdown::{Run, render, targets};
