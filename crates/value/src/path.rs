//! Document paths: the way from an item's top level to a value inside it.

use std::fmt;
use std::sync::Arc;

use crate::{AttributeValue, Attributes};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathElement {
    Name(Arc<str>),
    Index(usize),
}

/// A name, and the elements below it. Most paths are a name alone. Names are shared, because an
/// expression can use a long one many times.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    root: Arc<str>,
    below: Vec<PathElement>,
}

impl Path {
    pub fn new(root: impl Into<Arc<str>>, below: Vec<PathElement>) -> Path {
        Path { root: root.into(), below }
    }

    pub fn top_level(root: impl Into<Arc<str>>) -> Path {
        Path::new(root, Vec::new())
    }

    /// The name of the top-level attribute that the path enters.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The root, for callers that keep it.
    pub fn shared_root(&self) -> &Arc<str> {
        &self.root
    }

    /// The elements after the root.
    pub fn below_root(&self) -> &[PathElement] {
        &self.below
    }

    pub fn is_top_level(&self) -> bool {
        self.below.is_empty()
    }

    /// The value at the path, found element by element ([`AttributeValue::step`]).
    pub fn lookup<'t>(&self, item: &'t Attributes) -> Option<&'t AttributeValue> {
        let root = item.get(self.root())?;
        self.below_root().iter().try_fold(root, AttributeValue::step)
    }
}

impl AttributeValue {
    /// A name enters only maps and an index only lists. Anything else, and an index past the end,
    /// finds nothing.
    pub fn step(&self, element: &PathElement) -> Option<&AttributeValue> {
        match (self, element) {
            (AttributeValue::M(members), PathElement::Name(name)) => members.get(&**name),
            (AttributeValue::L(members), PathElement::Index(index)) => members.get(*index),
            _ => None,
        }
    }
}

/// The path as an expression would spell it, names unescaped: `a.b[3]`.
impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.root())?;
        self.below_root().iter().try_for_each(|element| match element {
            PathElement::Name(name) => write!(formatter, ".{name}"),
            PathElement::Index(index) => write!(formatter, "[{index}]"),
        })
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = PathElement::Name(self.root.clone());
        let elements: Vec<&PathElement> = [&root].into_iter().chain(&self.below).collect();
        formatter.debug_tuple("Path").field(&elements).finish()
    }
}
