//! Projections: the selected parts of an item, each in its place.

use std::collections::BTreeMap;
use std::sync::Arc;

use zenobe_value::{
    AttributeValue, Attributes, EncodedItem, ItemRef, Path, PathElement, ValueRef, ValueView,
};

/// The paths to select, and the same paths as a tree to walk alongside an item.
///
/// The legacy `AttributesToGet` lowers to one top-level path per name. PartiQL's select lists have
/// columns: the value at a path becomes an attribute of its own, without its parents.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Projection {
    paths: Vec<Path>,
    roots: BTreeMap<Arc<str>, SelectedPart>,
    /// The names of columns, one for each path. Empty if every value stays in its place.
    columns: Vec<String>,
}

impl Projection {
    pub fn new(paths: Vec<Path>) -> Projection {
        let roots = selections(&paths);
        Projection { paths, roots, columns: Vec::new() }
    }

    /// Of columns with the same name, the last one found counts.
    pub fn columns(columns: Vec<(String, Path)>) -> Projection {
        let is_attribute =
            |(name, path): &(String, Path)| path.is_top_level() && path.root() == name;
        let stay = columns.iter().all(is_attribute);
        let (names, paths): (Vec<String>, Vec<Path>) = columns.into_iter().unzip();
        match stay {
            true => Projection::new(paths),
            false => Projection { paths, roots: BTreeMap::new(), columns: names },
        }
    }

    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// The selected parts of an item. A parent is left out if nothing below it is found.
    pub fn apply(&self, item: ItemRef<'_>) -> EncodedItem {
        if !self.columns.is_empty() {
            let columns = self.columns.iter().zip(&self.paths);
            let found = columns.filter_map(|(name, path)| Some((name, item.lookup(path)?)));
            let found = found.map(|(name, value)| (name.clone(), value.decode()));
            return EncodedItem::encode(&found.collect());
        }
        if self.paths.iter().all(Path::is_top_level) {
            return item.retain(|name| self.roots.contains_key(name));
        }
        let selected = self.roots.iter().filter_map(|(name, selection)| {
            let value = selection.select(item.get(name)?)?;
            Some((name.to_string(), value))
        });
        EncodedItem::encode(&selected.collect())
    }
}

/// The parts of a decoded item that lie on the given paths.
pub(crate) fn select_paths<'p>(
    paths: impl IntoIterator<Item = &'p Path>,
    item: &Attributes,
) -> Attributes {
    let selected = selections(paths).into_iter().filter_map(|(name, selection)| {
        let value = selection.select(item.get(&*name)?)?;
        Some((name.to_string(), value))
    });
    selected.collect()
}

/// Which part of a value is selected.
#[derive(Debug, Clone, PartialEq, Hash)]
enum SelectedPart {
    Whole,
    Members(BTreeMap<Arc<str>, SelectedPart>),
    Elements(BTreeMap<usize, SelectedPart>),
}

fn selections<'p>(paths: impl IntoIterator<Item = &'p Path>) -> BTreeMap<Arc<str>, SelectedPart> {
    let mut roots: BTreeMap<Arc<str>, SelectedPart> = BTreeMap::new();
    for path in paths {
        match roots.get_mut(path.root()) {
            Some(selection) => selection.add(path.below_root()),
            None => {
                roots.insert(Arc::clone(path.shared_root()), SelectedPart::of(path.below_root()));
            }
        }
    }
    roots
}

impl SelectedPart {
    fn of(path: &[PathElement]) -> SelectedPart {
        match path.split_first() {
            None => SelectedPart::Whole,
            Some((PathElement::Name(name), rest)) => {
                SelectedPart::Members(BTreeMap::from([(name.clone(), SelectedPart::of(rest))]))
            }
            Some((PathElement::Index(index), rest)) => {
                SelectedPart::Elements(BTreeMap::from([(*index, SelectedPart::of(rest))]))
            }
        }
    }

    /// Bound projections hold no overlapping or conflicting paths. In others the wider of two
    /// overlapping paths wins, and the first of two that conflict.
    fn add(&mut self, path: &[PathElement]) {
        match (&mut *self, path.split_first()) {
            (_, None) => *self = SelectedPart::Whole,
            (SelectedPart::Members(members), Some((PathElement::Name(name), rest))) => {
                match members.get_mut(name) {
                    Some(selection) => selection.add(rest),
                    None => {
                        members.insert(name.clone(), SelectedPart::of(rest));
                    }
                }
            }
            (SelectedPart::Elements(elements), Some((PathElement::Index(index), rest))) => {
                match elements.get_mut(index) {
                    Some(selection) => selection.add(rest),
                    None => {
                        elements.insert(*index, SelectedPart::of(rest));
                    }
                }
            }
            _ => {}
        }
    }

    /// Selected list elements are packed into a dense list, in ascending order.
    fn select<Node: Walk>(&self, node: Node) -> Option<AttributeValue> {
        match self {
            SelectedPart::Whole => Some(node.to_value()),
            SelectedPart::Members(members) => {
                let selected = members.iter().filter_map(|(name, selection)| {
                    let value = selection.select(node.member(name)?)?;
                    Some((name.to_string(), value))
                });
                let selected: Attributes = selected.collect();
                (!selected.is_empty()).then_some(AttributeValue::M(selected))
            }
            SelectedPart::Elements(elements) => {
                let selected = elements
                    .iter()
                    .filter_map(|(index, selection)| selection.select(node.element(*index)?));
                let selected: Vec<AttributeValue> = selected.collect();
                (!selected.is_empty()).then_some(AttributeValue::L(selected))
            }
        }
    }
}

/// A value that can be entered by name or index: stored bytes or a decoded tree.
trait Walk: Copy {
    fn member(self, name: &str) -> Option<Self>;
    fn element(self, index: usize) -> Option<Self>;
    fn to_value(self) -> AttributeValue;
}

impl Walk for ValueRef<'_> {
    fn member(self, name: &str) -> Option<Self> {
        match self.view() {
            ValueView::M(members) => members.get(name),
            _ => None,
        }
    }

    fn element(self, index: usize) -> Option<Self> {
        match self.view() {
            ValueView::L(elements) => elements.get(index),
            _ => None,
        }
    }

    fn to_value(self) -> AttributeValue {
        self.decode()
    }
}

impl Walk for &AttributeValue {
    fn member(self, name: &str) -> Option<Self> {
        match self {
            AttributeValue::M(members) => members.get(name),
            _ => None,
        }
    }

    fn element(self, index: usize) -> Option<Self> {
        match self {
            AttributeValue::L(elements) => elements.get(index),
            _ => None,
        }
    }

    fn to_value(self) -> AttributeValue {
        self.clone()
    }
}
