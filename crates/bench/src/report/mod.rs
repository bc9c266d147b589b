//! The documents: `docs/benchmarks.md`, the chart in it, and the README's summary.

mod chart;
mod markdown;
mod remarks;
mod summary;

pub use chart::draw;
pub use markdown::{Run, render, targets};
pub use summary::update as update_summary;
