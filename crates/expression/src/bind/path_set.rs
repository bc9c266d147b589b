//! The paths of a projection, and the targets of an update, must not get in each other's way.

use std::borrow::Borrow;

use zenobe_value::{Path, PathElement};

use crate::error::Fault;

/// Any overlap is reported before any conflict; the earlier path in the text is path one.
pub(crate) fn check_disjoint<P: Borrow<Path>>(paths: &[P]) -> Result<(), Fault> {
    let mut conflict = None;
    for (position, two) in paths.iter().map(Borrow::borrow).enumerate() {
        for one in paths[..position].iter().map(Borrow::borrow) {
            match relation(one, two) {
                Relation::Apart => {}
                Relation::Overlap => {
                    return Err(Fault::PathsOverlap { one: one.clone(), two: two.clone() });
                }
                Relation::Conflict => {
                    conflict.get_or_insert((one, two));
                }
            }
        }
    }
    match conflict {
        Some((one, two)) => Err(Fault::PathsConflict { one: one.clone(), two: two.clone() }),
        None => Ok(()),
    }
}

enum Relation {
    Apart,
    /// Equal, or one leads to the other.
    Overlap,
    /// The same parent is taken for a map by one and for a list by the other.
    Conflict,
}

fn relation(one: &Path, two: &Path) -> Relation {
    if one.root() != two.root() {
        return Relation::Apart;
    }
    let differing = one.below_root().iter().zip(two.below_root()).find(|(one, two)| one != two);
    match differing {
        None => Relation::Overlap,
        Some((PathElement::Name(_), PathElement::Index(_)))
        | Some((PathElement::Index(_), PathElement::Name(_))) => Relation::Conflict,
        Some(_) => Relation::Apart,
    }
}
