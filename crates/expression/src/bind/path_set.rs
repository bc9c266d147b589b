//! Checks that the paths of a projection, or the targets of an update, do not overlap or conflict.

use std::borrow::Borrow;
use std::collections::HashMap;

use zenobe_value::{Path, PathElement};

use crate::error::ExpressionFault;

/// Any overlap is reported before any conflict; the earlier path in the text is path one.
pub(crate) fn check_disjoint<P: Borrow<Path>>(paths: &[P]) -> Result<(), ExpressionFault> {
    if paths.len() < 2 {
        return Ok(());
    }
    let paths: Vec<&Path> = paths.iter().map(Borrow::borrow).collect();
    match paths.len() {
        0..=FEW => check_pairs(&paths, &paths, |one, two| relation(one, two)),
        _ => check_pairs(&paths, &numbered(&paths), |one, two| numbered_relation(one, two)),
    }
}

/// Up to this many paths are compared directly. Every path is compared with every other, and names
/// may be long and differ only at the end, so more paths than this compare by numbered names.
const FEW: usize = 8;

/// `compared` holds the same paths in the form to compare.
fn check_pairs<Compared>(
    paths: &[&Path],
    compared: &[Compared],
    relation: impl Fn(&Compared, &Compared) -> Relation,
) -> Result<(), ExpressionFault> {
    let mut conflict = None;
    for (position, &two) in paths.iter().enumerate() {
        for (earlier, &one) in paths[..position].iter().enumerate() {
            match relation(&compared[earlier], &compared[position]) {
                Relation::Apart => {}
                Relation::Overlap => {
                    return Err(ExpressionFault::PathsOverlap {
                        one: one.clone(),
                        two: two.clone(),
                    });
                }
                Relation::Conflict => {
                    conflict.get_or_insert((one, two));
                }
            }
        }
    }
    match conflict {
        Some((one, two)) => {
            Err(ExpressionFault::PathsConflict { one: one.clone(), two: two.clone() })
        }
        None => Ok(()),
    }
}

enum Relation {
    Apart,
    /// The paths are equal, or one leads to the other.
    Overlap,
    /// One path takes the common parent for a map and the other for a list.
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

/// An element, its name replaced by a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbered {
    Name(usize),
    Index(usize),
}

fn numbered<'p>(paths: &[&'p Path]) -> Vec<Vec<Numbered>> {
    let mut numbers: HashMap<&'p str, usize> = HashMap::new();
    let mut number = |name: &'p str| {
        let next = numbers.len();
        Numbered::Name(*numbers.entry(name).or_insert(next))
    };
    let mut numbered = Vec::with_capacity(paths.len());
    for path in paths {
        let mut elements = vec![number(path.root())];
        elements.extend(path.below_root().iter().map(|element| match element {
            PathElement::Name(name) => number(name),
            PathElement::Index(index) => Numbered::Index(*index),
        }));
        numbered.push(elements);
    }
    numbered
}

fn numbered_relation(one: &[Numbered], two: &[Numbered]) -> Relation {
    match one.iter().zip(two).find(|(one, two)| one != two) {
        None => Relation::Overlap,
        Some((Numbered::Name(_), Numbered::Index(_)) | (Numbered::Index(_), Numbered::Name(_))) => {
            Relation::Conflict
        }
        Some(_) => Relation::Apart,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        let mut elements = text.split('.');
        let element = |text: &str| match text.parse() {
            Ok(index) => PathElement::Index(index),
            Err(_) => PathElement::Name(text.into()),
        };
        Path::new(elements.next().unwrap(), elements.map(element).collect())
    }

    /// The fault does not depend on how many other paths there are.
    #[test]
    fn many_paths_are_compared_like_few() {
        let others: Vec<Path> = (0..20).map(|number| path(&format!("z{number}.a.1"))).collect();
        let sets: [&[&str]; 8] = [
            &["a", "b", "a.c"],
            &["a.b", "a.c", "a.b.1"],
            &["a.b", "a.1", "a.b.c"],
            &["a.b", "a.1"],
            &["a.1", "a.b", "a.c"],
            &["a.1.b", "a.1.c", "a.2"],
            &["a", "a"],
            &["a.b", "b.a", "c"],
        ];
        for set in sets {
            let few: Vec<Path> = set.iter().map(|text| path(text)).collect();
            let many: Vec<Path> = few.iter().chain(&others).cloned().collect();
            let faults =
                [&few, &many].map(|paths| check_disjoint(paths).map_err(|it| format!("{it:?}")));
            assert_eq!(faults[0], faults[1], "{set:?}");
        }
    }
}
