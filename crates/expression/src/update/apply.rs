//! Applies actions to an item. It computes every effect from the old item, checks all of them, and
//! copies values last.

use zenobe_value::{AttributeValue, Attributes, Path, PathElement};

use super::arithmetic::{add, delete, legacy_add, legacy_delete};
use super::computed::{Allowance, Computed};
use super::{Action, UpdateError};

pub(super) fn apply(actions: &[Action], mut item: Attributes) -> Result<Attributes, UpdateError> {
    let changes = Changes::check(effects(actions, &item)?, &item)?;
    changes.carry_out(&mut item)?;
    Ok(item)
}

/// On a missing item REMOVE and DELETE do nothing and don't check their paths. Right-hand sides,
/// unlike conditions, see the key attributes.
pub(super) fn create(
    actions: &[Action],
    key: &Attributes,
) -> Result<Option<Attributes>, UpdateError> {
    let creating = actions.iter().filter(|action| action.creates_item());
    if creating.clone().next().is_none() && !actions.is_empty() {
        return Ok(None);
    }
    let changes = Changes::check(effects(creating, key)?, key)?;
    let mut item = key.clone();
    changes.carry_out(&mut item)?;
    Ok(Some(item))
}

/// What happens to a target.
enum TargetEffect<'v> {
    Put(Computed<'v>),
    Remove,
}

fn effects<'u, 'v>(
    actions: impl IntoIterator<Item = &'u Action>,
    old: &'v Attributes,
) -> Result<Vec<(&'u Path, TargetEffect<'v>)>, UpdateError>
where
    'u: 'v,
{
    let effects = actions.into_iter().map(|action| Ok((action.target(), effect(action, old)?)));
    effects.collect()
}

fn effect<'v>(action: &'v Action, old: &'v Attributes) -> Result<TargetEffect<'v>, UpdateError> {
    let existing = action.target().lookup(old);
    let put_or_remove = |value: Option<AttributeValue>| {
        value.map_or(TargetEffect::Remove, |value| TargetEffect::Put(Computed::Owned(value)))
    };
    match (action, existing) {
        (Action::Set { value, .. }, _) => value.evaluate(old).map(TargetEffect::Put),
        (Action::Add { value, .. }, existing) => add(existing, value).map(TargetEffect::Put),
        (Action::LegacyAdd { value, .. }, existing) => {
            legacy_add(existing, value).map(TargetEffect::Put)
        }
        (Action::Delete { value, .. }, Some(existing)) => {
            delete(existing, value).map(put_or_remove)
        }
        (Action::LegacyDelete { value, .. }, Some(existing)) => {
            legacy_delete(existing, value).map(put_or_remove)
        }
        // Deleting from a missing attribute leaves it missing.
        (Action::Remove { .. } | Action::Delete { .. } | Action::LegacyDelete { .. }, _) => {
            Ok(TargetEffect::Remove)
        }
    }
}

/// Legal effects that own their values: they borrow nothing from the item that they change.
///
/// List indexes refer to the old list. Therefore removals that hit nothing are dropped before
/// anything is appended; values are put in ascending order, so appended elements keep the order of
/// their indexes; and removals come last, in descending order, so that none shifts the target of
/// another.
struct Changes<'u> {
    puts: Vec<(&'u Path, AttributeValue)>,
    removals: Vec<&'u Path>,
}

impl<'u> Changes<'u> {
    fn check(
        effects: Vec<(&'u Path, TargetEffect<'_>)>,
        item: &Attributes,
    ) -> Result<Changes<'u>, UpdateError> {
        effects.iter().try_for_each(|(path, _)| check_place(item, path))?;
        let mut allowance = Allowance::new();
        for (_, effect) in &effects {
            if let TargetEffect::Put(value) = effect {
                allowance.take(value)?;
            }
        }
        let mut changes = Changes { puts: Vec::with_capacity(effects.len()), removals: Vec::new() };
        for (path, effect) in effects {
            match effect {
                TargetEffect::Put(value) => changes.puts.push((path, value.into_value())),
                TargetEffect::Remove if path.lookup(item).is_some() => changes.removals.push(path),
                TargetEffect::Remove => {}
            }
        }
        changes.puts.sort_by_key(|(path, _)| *path);
        changes.removals.sort();
        Ok(changes)
    }

    fn carry_out(self, item: &mut Attributes) -> Result<(), UpdateError> {
        for (path, value) in self.puts {
            put(item, path, value)?;
        }
        self.removals.iter().rev().try_for_each(|path| remove(item, path))
    }
}

/// The parent of a target must exist and be of the right kind.
fn check_place(item: &Attributes, path: &Path) -> Result<(), UpdateError> {
    let Some((last, parents)) = path.below_root().split_last() else {
        return Ok(());
    };
    let root = item.get(path.root());
    let parent = parents.iter().fold(root, |value, element| value?.step(element));
    match (parent, last) {
        (Some(AttributeValue::M(_)), PathElement::Name(_))
        | (Some(AttributeValue::L(_)), PathElement::Index(_)) => Ok(()),
        _ => Err(UpdateError::InvalidPath),
    }
}

fn put(item: &mut Attributes, path: &Path, value: AttributeValue) -> Result<(), UpdateError> {
    match place(item, path)? {
        PathEnd::Member(members, name) => match members.get_mut(name) {
            Some(member) => *member = value,
            None => {
                members.insert(name.to_owned(), value);
            }
        },
        PathEnd::Element(elements, index) => match elements.get_mut(index) {
            Some(element) => *element = value,
            None => elements.push(value),
        },
    }
    Ok(())
}

fn remove(item: &mut Attributes, path: &Path) -> Result<(), UpdateError> {
    match place(item, path)? {
        PathEnd::Member(members, name) => {
            members.remove(name);
        }
        PathEnd::Element(elements, index) => {
            elements.remove(index);
        }
    }
    Ok(())
}

/// Where a path ends: in a map under a name, or in a list at an index. The value itself may be
/// missing.
enum PathEnd<'i, 'p> {
    Member(&'i mut Attributes, &'p str),
    Element(&'i mut Vec<AttributeValue>, usize),
}

fn place<'i, 'p>(item: &'i mut Attributes, path: &'p Path) -> Result<PathEnd<'i, 'p>, UpdateError> {
    let Some((last, parents)) = path.below_root().split_last() else {
        return Ok(PathEnd::Member(item, path.root()));
    };
    let root = item.get_mut(path.root());
    let parent = parents.iter().fold(root, |value, element| match (value?, element) {
        (AttributeValue::M(members), PathElement::Name(name)) => members.get_mut(&**name),
        (AttributeValue::L(elements), PathElement::Index(index)) => elements.get_mut(*index),
        _ => None,
    });
    match (parent, last) {
        (Some(AttributeValue::M(members)), PathElement::Name(name)) => {
            Ok(PathEnd::Member(members, name))
        }
        (Some(AttributeValue::L(elements)), PathElement::Index(index)) => {
            Ok(PathEnd::Element(elements, *index))
        }
        _ => Err(UpdateError::InvalidPath),
    }
}
