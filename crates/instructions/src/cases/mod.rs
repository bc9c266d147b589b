//! The hot paths that are counted.

mod items;

use crate::case::Case;

pub fn all() -> Vec<Case> {
    items::cases()
}
