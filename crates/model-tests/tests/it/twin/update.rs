//! Updates: the new item, computed by rebuilding it from the top.

use std::collections::BTreeMap;

use zenobe_expression::UpdateError;
use zenobe_value::{AttributeValue, Attributes, Number, NumberError, PathElement};

use super::route::Route;

/// The sections of an update. No two targets clash.
#[derive(Debug, Clone, Default)]
pub struct Update {
    pub sets: Vec<(Route, Source)>,
    pub removes: Vec<Route>,
    pub adds: Vec<(Route, AttributeValue)>,
    pub deletes: Vec<(Route, AttributeValue)>,
}

#[derive(Debug, Clone)]
pub enum Source {
    Operand(Operand),
    Plus(Operand, Operand),
    Minus(Operand, Operand),
}

#[derive(Debug, Clone)]
pub enum Operand {
    Route(Route),
    Literal(AttributeValue),
    IfNotExists(Route, Box<Operand>),
    ListAppend(Box<Operand>, Box<Operand>),
}

#[derive(Debug, Clone)]
enum Effect {
    Put(AttributeValue),
    Remove,
}

/// Everything that is wrong with an update of an item; the specification does not say which fault
/// is reported.
pub type Faults = Vec<UpdateError>;

impl Update {
    pub fn targets(&self) -> Vec<&Route> {
        let sets = self.sets.iter().map(|(route, _)| route);
        let adds = self.adds.iter().map(|(route, _)| route);
        let deletes = self.deletes.iter().map(|(route, _)| route);
        sets.chain(&self.removes).chain(adds).chain(deletes).collect()
    }

    /// The targets and the routes on right-hand sides.
    pub fn routes(&self) -> Vec<&Route> {
        let mut routes = self.targets();
        for (_, source) in &self.sets {
            match source {
                Source::Operand(operand) => operand.push_routes(&mut routes),
                Source::Plus(left, right) | Source::Minus(left, right) => {
                    left.push_routes(&mut routes);
                    right.push_routes(&mut routes);
                }
            }
        }
        routes
    }

    /// The item afterwards; `None` if it was missing and stays so.
    pub fn apply(
        &self,
        old: Option<&Attributes>,
        key: &Attributes,
    ) -> Result<Option<Attributes>, Faults> {
        let mut faults = Faults::new();
        let mut effects = BTreeMap::new();
        // For an item that does not exist yet, right-hand sides see the key.
        let seen = Some(old.unwrap_or(key));
        for (target, source) in &self.sets {
            match source.value(seen) {
                Ok(value) => drop(effects.insert(target.clone(), Effect::Put(value))),
                Err(fault) => faults.push(fault),
            }
        }
        for (target, value) in &self.adds {
            match add(target.find(seen), value) {
                Ok(value) => drop(effects.insert(target.clone(), Effect::Put(value))),
                Err(fault) => faults.push(fault),
            }
        }
        let creates = !(self.sets.is_empty() && self.adds.is_empty());
        if old.is_none() && !creates {
            return Ok(None);
        }
        if old.is_some() {
            for target in &self.removes {
                effects.insert(target.clone(), Effect::Remove);
            }
            for (target, value) in &self.deletes {
                match subtract(target.find(old), value) {
                    Ok(effect) => drop(effects.insert(target.clone(), effect)),
                    Err(fault) => faults.push(fault),
                }
            }
        }
        let effects: Vec<(&[PathElement], &Effect)> =
            effects.iter().map(|(route, effect)| (&route.0[..], effect)).collect();
        let item = rebuild_members(old.unwrap_or(key), &effects, &mut faults);
        if faults.is_empty() { Ok(Some(item)) } else { Err(faults) }
    }

    /// What the size check of UpdateItem adds to the item without its keys.
    pub fn size_allowance_bytes(&self) -> u64 {
        let set = |(target, source): &(Route, Source)| {
            let indexed = target.0.iter().any(|element| matches!(element, PathElement::Index(_)));
            let arithmetic = matches!(source, Source::Plus(..) | Source::Minus(..));
            19 + u64::from(indexed) + 50 * u64::from(arithmetic)
        };
        3 + self.sets.iter().map(set).sum::<u64>()
            + 19 * self.adds.len() as u64
            + 2 * (self.removes.len() + self.deletes.len()) as u64
    }
}

impl Source {
    fn value(&self, old: Option<&Attributes>) -> Result<AttributeValue, UpdateError> {
        match self {
            Source::Operand(operand) => operand.value(old),
            Source::Plus(left, right) => {
                arithmetic(&left.value(old)?, &right.value(old)?, |left, right| {
                    left.checked_add(&right)
                })
            }
            Source::Minus(left, right) => {
                arithmetic(&left.value(old)?, &right.value(old)?, |left, right| {
                    left.checked_sub(&right)
                })
            }
        }
    }
}

impl Operand {
    fn value(&self, old: Option<&Attributes>) -> Result<AttributeValue, UpdateError> {
        match self {
            Operand::Route(route) => route.find(old).ok_or(UpdateError::MissingAttribute),
            Operand::Literal(value) => Ok(value.clone()),
            Operand::IfNotExists(route, default) => match route.find(old) {
                Some(value) => Ok(value),
                None => default.value(old),
            },
            Operand::ListAppend(front, back) => match (front.value(old)?, back.value(old)?) {
                (AttributeValue::L(front), AttributeValue::L(back)) => {
                    Ok(AttributeValue::L(front.into_iter().chain(back).collect()))
                }
                _ => Err(UpdateError::OperandType),
            },
        }
    }

    fn push_routes<'u>(&'u self, routes: &mut Vec<&'u Route>) {
        match self {
            Operand::Route(route) => routes.push(route),
            Operand::Literal(_) => {}
            Operand::IfNotExists(route, default) => {
                routes.push(route);
                default.push_routes(routes);
            }
            Operand::ListAppend(front, back) => {
                front.push_routes(routes);
                back.push_routes(routes);
            }
        }
    }
}

fn arithmetic(
    left: &AttributeValue,
    right: &AttributeValue,
    operation: impl Fn(Number, Number) -> Result<Number, NumberError>,
) -> Result<AttributeValue, UpdateError> {
    match (left, right) {
        (AttributeValue::N(left), AttributeValue::N(right)) => match operation(*left, *right) {
            Ok(number) => Ok(AttributeValue::N(number)),
            Err(NumberError::Underflow) => Err(UpdateError::NumberUnderflow),
            Err(_) => Err(UpdateError::NumberOverflow),
        },
        _ => Err(UpdateError::OperandType),
    }
}

fn add(
    existing: Option<AttributeValue>,
    value: &AttributeValue,
) -> Result<AttributeValue, UpdateError> {
    match (existing, value) {
        (None, value) => Ok(value.clone()),
        (Some(existing @ AttributeValue::N(_)), AttributeValue::N(_)) => {
            arithmetic(&existing, value, |left, right| left.checked_add(&right))
        }
        (Some(AttributeValue::Ss(one)), AttributeValue::Ss(other)) => {
            Ok(AttributeValue::Ss(one.union(other).cloned().collect()))
        }
        (Some(AttributeValue::Ns(one)), AttributeValue::Ns(other)) => {
            Ok(AttributeValue::Ns(one.union(other).copied().collect()))
        }
        (Some(AttributeValue::Bs(one)), AttributeValue::Bs(other)) => {
            Ok(AttributeValue::Bs(one.union(other).cloned().collect()))
        }
        _ => Err(UpdateError::OperandType),
    }
}

fn subtract(
    existing: Option<AttributeValue>,
    value: &AttributeValue,
) -> Result<Effect, UpdateError> {
    let rest = match (existing, value) {
        (None, _) => return Ok(Effect::Remove),
        (Some(AttributeValue::Ss(one)), AttributeValue::Ss(other)) => {
            let rest: std::collections::BTreeSet<_> = one.difference(other).cloned().collect();
            (!rest.is_empty()).then_some(AttributeValue::Ss(rest))
        }
        (Some(AttributeValue::Ns(one)), AttributeValue::Ns(other)) => {
            let rest: std::collections::BTreeSet<_> = one.difference(other).copied().collect();
            (!rest.is_empty()).then_some(AttributeValue::Ns(rest))
        }
        (Some(AttributeValue::Bs(one)), AttributeValue::Bs(other)) => {
            let rest: std::collections::BTreeSet<_> = one.difference(other).cloned().collect();
            (!rest.is_empty()).then_some(AttributeValue::Bs(rest))
        }
        _ => return Err(UpdateError::OperandType),
    };
    Ok(rest.map_or(Effect::Remove, Effect::Put))
}

type Effects<'e> = [(&'e [PathElement], &'e Effect)];

fn rebuild_members(members: &Attributes, effects: &Effects<'_>, faults: &mut Faults) -> Attributes {
    let mut rebuilt = members.clone();
    for (first, below) in grouped(effects) {
        let PathElement::Name(name) = first else {
            faults.push(UpdateError::InvalidPath);
            continue;
        };
        match here(&below) {
            Some(Effect::Put(value)) => drop(rebuilt.insert(name.to_string(), value.clone())),
            Some(Effect::Remove) => drop(rebuilt.remove(&**name)),
            None => match members.get(&**name) {
                Some(value) => {
                    rebuilt.insert(name.to_string(), rebuild(value, &below, faults));
                }
                None => faults.push(UpdateError::InvalidPath),
            },
        }
    }
    rebuilt
}

fn rebuild_elements(
    elements: &[AttributeValue],
    effects: &Effects<'_>,
    faults: &mut Faults,
) -> Vec<AttributeValue> {
    let mut rebuilt: Vec<Option<AttributeValue>> = elements.iter().cloned().map(Some).collect();
    // Groups are sorted by index, so appended elements are in that order as well.
    for (first, below) in grouped(effects) {
        let PathElement::Index(index) = *first else {
            faults.push(UpdateError::InvalidPath);
            continue;
        };
        match (here(&below), elements.get(index)) {
            (Some(Effect::Put(value)), Some(_)) => rebuilt[index] = Some(value.clone()),
            (Some(Effect::Put(value)), None) => rebuilt.push(Some(value.clone())),
            (Some(Effect::Remove), Some(_)) => rebuilt[index] = None,
            (Some(Effect::Remove), None) => {}
            (None, Some(value)) => rebuilt[index] = Some(rebuild(value, &below, faults)),
            (None, None) => faults.push(UpdateError::InvalidPath),
        }
    }
    rebuilt.into_iter().flatten().collect()
}

fn rebuild(value: &AttributeValue, effects: &Effects<'_>, faults: &mut Faults) -> AttributeValue {
    match value {
        AttributeValue::M(members) => AttributeValue::M(rebuild_members(members, effects, faults)),
        AttributeValue::L(elements) => {
            AttributeValue::L(rebuild_elements(elements, effects, faults))
        }
        other => {
            faults.push(UpdateError::InvalidPath);
            other.clone()
        }
    }
}

/// The effect on the value itself. It is then the only one, because targets don't clash.
fn here<'e>(effects: &Effects<'e>) -> Option<&'e Effect> {
    effects.iter().find(|(route, _)| route.is_empty()).map(|(_, effect)| *effect)
}

/// The effects by the first element of their route, without that element.
fn grouped<'e>(
    effects: &Effects<'e>,
) -> BTreeMap<&'e PathElement, Vec<(&'e [PathElement], &'e Effect)>> {
    let mut groups: BTreeMap<&PathElement, Vec<_>> = BTreeMap::new();
    for (route, effect) in effects {
        groups.entry(&route[0]).or_default().push((&route[1..], *effect));
    }
    groups
}
