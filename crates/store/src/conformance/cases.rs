//! The cases, by subject. Each opens the stores that it needs from its [`Backend`](super::Backend).

mod copying;
mod isolation;
mod lifetime;
mod logs_and_counters;
mod random;
mod reading;
mod several_stores;
mod stamps;
mod writing;

pub use copying::*;
pub use isolation::*;
pub use lifetime::*;
pub use logs_and_counters::*;
pub use random::*;
pub use reading::*;
pub use several_stores::*;
pub use stamps::*;
pub use writing::*;
