//! Document paths: the way from an item's top level to a value inside it.

use std::fmt;

use crate::{AttributeValue, Attributes};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathElement {
    Name(String),
    Index(usize),
}

/// Never empty, and the first element is always a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Vec<PathElement>);

impl Path {
    /// # Panics
    /// If the elements are empty or begin with an index. The grammar of paths cannot produce
    /// either, so this is a mistake of the caller, never of a request.
    pub fn new(elements: Vec<PathElement>) -> Path {
        assert!(
            matches!(elements.first(), Some(PathElement::Name(_))),
            "a path begins with an attribute name"
        );
        Path(elements)
    }

    pub fn top_level(name: impl Into<String>) -> Path {
        Path(vec![PathElement::Name(name.into())])
    }

    pub fn elements(&self) -> &[PathElement] {
        &self.0
    }

    /// The name of the top-level attribute that the path enters.
    pub fn root(&self) -> &str {
        match &self.0[0] {
            PathElement::Name(name) => name,
            PathElement::Index(_) => unreachable!("a path begins with an attribute name"),
        }
    }

    /// The elements after the root.
    pub fn below_root(&self) -> &[PathElement] {
        &self.0[1..]
    }

    pub fn is_top_level(&self) -> bool {
        self.0.len() == 1
    }

    /// The value at the path, found step by step ([`AttributeValue::step`]).
    pub fn lookup<'t>(&self, item: &'t Attributes) -> Option<&'t AttributeValue> {
        let root = item.get(self.root())?;
        self.below_root().iter().try_fold(root, AttributeValue::step)
    }
}

impl AttributeValue {
    /// A name leads only into maps and an index only into lists; anything else, and an index beyond the
    /// end, leads nowhere.
    pub fn step(&self, element: &PathElement) -> Option<&AttributeValue> {
        match (self, element) {
            (AttributeValue::M(members), PathElement::Name(name)) => members.get(name),
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
