//! The hot paths to count.

mod expressions;
mod http;
mod items;
mod signatures;
mod values;

use crate::case::Case;

pub fn all() -> Vec<Case> {
    [items::cases(), http::cases(), expressions::cases(), values::cases(), signatures::cases()]
        .into_iter()
        .flatten()
        .collect()
}
