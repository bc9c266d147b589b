//! Reports for people and programs.

mod chart;
mod human;
mod json;
mod page;
mod plot;
mod summary;

pub use human::{human_bytes, human_count, human_time, three_digits};
pub use json::json;
pub use page::html;
pub use plot::plot;
pub use summary::summary;

/// The program that measured.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    pub version: &'a str,
    pub commit: Option<&'a str>,
}
