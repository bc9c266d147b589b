//! Tables: their life cycle, their settings, and how indexes join and leave them.

mod background;
mod concurrency;
pub mod harness;
mod indexes;
mod life;
mod limits;
mod settings;
mod throughput;
