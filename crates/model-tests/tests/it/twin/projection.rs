//! Projections: an item reduced to the values at some routes.

use zenobe_value::{AttributeValue, Attributes, PathElement};

use super::route::Route;

pub fn project(routes: &[Route], item: &Attributes) -> Attributes {
    let routes: Vec<&[PathElement]> = routes.iter().map(|route| &route.0[..]).collect();
    select_members(&routes, item)
}

fn select_members(routes: &[&[PathElement]], members: &Attributes) -> Attributes {
    let mut selected = Attributes::new();
    for (name, value) in members {
        let below = below(routes, &PathElement::Name(name.as_str().into()));
        if let Some(value) = select(&below, value) {
            selected.insert(name.clone(), value);
        }
    }
    selected
}

/// The part of a value that these routes select. An empty route selects all of it.
fn select(routes: &[&[PathElement]], value: &AttributeValue) -> Option<AttributeValue> {
    if routes.iter().any(|route| route.is_empty()) {
        return Some(value.clone());
    }
    match value {
        AttributeValue::M(members) => {
            let selected = select_members(routes, members);
            (!selected.is_empty()).then_some(AttributeValue::M(selected))
        }
        AttributeValue::L(elements) => {
            let elements = elements.iter().enumerate();
            let selected: Vec<AttributeValue> = elements
                .filter_map(|(index, element)| {
                    select(&below(routes, &PathElement::Index(index)), element)
                })
                .collect();
            (!selected.is_empty()).then_some(AttributeValue::L(selected))
        }
        _ => None,
    }
}

fn below<'r>(routes: &[&'r [PathElement]], element: &PathElement) -> Vec<&'r [PathElement]> {
    let starting = routes.iter().filter(|route| route.first() == Some(element));
    starting.map(|route| &route[1..]).collect()
}
