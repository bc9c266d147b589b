//! How error messages print a document path.

use std::fmt;

use zenobe_value::{Path, PathElement};

/// Displays a path as a list of its elements, indexes in brackets: `[a, [1], b]`.
#[derive(Debug, Clone, Copy)]
pub struct ListedPath<'p>(pub &'p Path);

impl fmt::Display for ListedPath<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[{}", self.0.root())?;
        for element in self.0.below_root() {
            match element {
                PathElement::Name(name) => write!(formatter, ", {name}")?,
                PathElement::Index(index) => write!(formatter, ", [{index}]")?,
            }
        }
        formatter.write_str("]")
    }
}
