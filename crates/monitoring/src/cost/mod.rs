//! What the observed traffic would cost on AWS.
//!
//! The [`recorder`] adds the traffic of each minute to rows of the hour. [`observed`] reads them again.
//! From there on everything is arithmetic: [`capacity`] finds what would have to be provisioned,
//! [`prices`] knows what it costs, and [`estimate`] puts both together.

pub mod capacity;
pub mod estimate;
pub mod observed;
pub mod prices;
mod record;
pub mod recorder;

pub use estimate::{Estimate, Mode};
pub use prices::{PriceFile, RegionPrices, StorageClass};
pub use recorder::CostRecorder;
