//! What the observed traffic would cost on AWS.
//!
//! The [`recorder`] adds the traffic of each minute to rows of the hour, and [`observed`] reads them.
//! The rest is arithmetic: [`needed_capacity`] computes what would have to be provisioned, [`prices`] holds
//! the prices, and [`estimate`] combines both.

pub mod estimate;
pub mod needed_capacity;
pub mod observed;
pub mod prices;
mod record;
pub mod recorder;

pub use estimate::{Estimate, Mode};
pub use prices::{PriceFile, RegionPrices, StorageClass};
pub use recorder::CostRecorder;
