//! Routes into an item: document paths.

use std::fmt;

use zenobe_value::{AttributeValue, Attributes, PathElement};

/// Starts with a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route(pub Vec<PathElement>);

impl Route {
    pub fn root(&self) -> &str {
        match &self.0[0] {
            PathElement::Name(name) => name,
            PathElement::Index(_) => panic!("a route begins with a name"),
        }
    }

    pub fn is_nested(&self) -> bool {
        self.0.len() > 1
    }

    pub fn find(&self, item: Option<&Attributes>) -> Option<AttributeValue> {
        let mut value = item?.get(self.root())?;
        for element in &self.0[1..] {
            value = match (value, element) {
                (AttributeValue::M(members), PathElement::Name(name)) => members.get(&**name)?,
                (AttributeValue::L(elements), PathElement::Index(index)) => elements.get(*index)?,
                _ => return None,
            };
        }
        Some(value.clone())
    }

    /// Whether the two can't be in one projection or be targets of one update: one leads to or
    /// through the other, or they disagree about the type of a common ancestor.
    pub fn clashes(&self, other: &Route) -> bool {
        let common = self.0.iter().zip(&other.0).take_while(|(one, other)| one == other).count();
        match (self.0.get(common), other.0.get(common)) {
            (None, _) | (_, None) => true,
            (Some(PathElement::Name(_)), Some(PathElement::Name(_))) => false,
            (Some(PathElement::Index(_)), Some(PathElement::Index(_))) => false,
            _ => true,
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, element) in self.0.iter().enumerate() {
            match element {
                PathElement::Name(name) if position == 0 => write!(formatter, "{name}")?,
                PathElement::Name(name) => write!(formatter, ".{name}")?,
                PathElement::Index(index) => write!(formatter, "[{index}]")?,
            }
        }
        Ok(())
    }
}
