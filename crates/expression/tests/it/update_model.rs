//! A naive model of updates. Lists are maps from original indexes to elements, so putting,
//! appending and removing need no order; they are packed at the end.

use std::collections::BTreeMap;

use proptest::prelude::*;
use zenobe_expression::UpdateError;
use zenobe_value::{AttributeValue, Attributes, Number};

use crate::condition_model::{lookup, steps};
use crate::generate;

#[derive(Debug, Clone)]
pub enum ModelAction {
    Set(ModelValue),
    Remove,
    Add(AttributeValue),
    Delete(AttributeValue),
}

#[derive(Debug, Clone)]
pub enum ModelValue {
    Literal(AttributeValue),
    Path(&'static str),
    IfNotExists(&'static str, AttributeValue),
    ListAppend(&'static str, Vec<AttributeValue>),
    Plus(&'static str, Number),
    Minus(Number, &'static str),
}

/// Actions on paths that neither overlap nor conflict.
pub fn actions() -> impl Strategy<Value = Vec<(&'static str, ModelAction)>> {
    let targets = vec![
        "a",
        "b",
        "fresh",
        "m.x",
        "m.y",
        "m.fresh",
        "l[0]",
        "l[1].x",
        "l[1].fresh",
        "l[2]",
        "l[3]",
        "l[5]",
        "l[9]",
        "absent.x",
        "q[0]",
    ];
    proptest::sample::subsequence(targets, 1..5).prop_shuffle().prop_flat_map(|targets| {
        targets
            .into_iter()
            .map(|target| action().prop_map(move |action| (target, action)))
            .collect::<Vec<_>>()
    })
}

fn action() -> impl Strategy<Value = ModelAction> {
    prop_oneof![
        4 => set_value().prop_map(ModelAction::Set),
        3 => Just(ModelAction::Remove),
        1 => generate::number().prop_map(|number| ModelAction::Add(AttributeValue::N(number))),
        1 => generate::set().prop_map(ModelAction::Add),
        1 => generate::set().prop_map(ModelAction::Delete),
    ]
}

fn set_value() -> impl Strategy<Value = ModelValue> {
    let path = || prop_oneof![Just("a"), Just("m.x"), Just("l"), Just("l[1]"), Just("absent")];
    let list = proptest::collection::vec(generate::value(), 0..3);
    prop_oneof![
        4 => generate::value().prop_map(ModelValue::Literal),
        1 => path().prop_map(ModelValue::Path),
        1 => (path(), generate::value()).prop_map(|(path, value)| ModelValue::IfNotExists(path, value)),
        1 => (path(), list).prop_map(|(path, list)| ModelValue::ListAppend(path, list)),
        1 => (path(), generate::number()).prop_map(|(path, number)| ModelValue::Plus(path, number)),
        1 => (path(), generate::number()).prop_map(|(path, number)| ModelValue::Minus(number, path)),
    ]
}

// ---- printing -----------------------------------------------------------------------------------

/// The text of the actions, grouped into sections, and the actions in the order of the text.
pub fn print(
    actions: &[(&'static str, ModelAction)],
    values: &mut BTreeMap<String, AttributeValue>,
) -> String {
    let mut sections: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (target, action) in in_text_order(actions) {
        let mut literal = |value: &AttributeValue| {
            let placeholder = format!(":v{}", values.len());
            values.insert(placeholder.clone(), value.clone());
            placeholder
        };
        let text = match &action {
            ModelAction::Remove => target.to_owned(),
            ModelAction::Add(value) | ModelAction::Delete(value) => {
                format!("{target} {}", literal(value))
            }
            ModelAction::Set(value) => {
                let value = match value {
                    ModelValue::Literal(value) => literal(value),
                    ModelValue::Path(path) => (*path).to_owned(),
                    ModelValue::IfNotExists(path, value) => {
                        format!("if_not_exists({path}, {})", literal(value))
                    }
                    ModelValue::ListAppend(path, list) => {
                        format!(
                            "list_append({path}, {})",
                            literal(&AttributeValue::L(list.clone()))
                        )
                    }
                    ModelValue::Plus(path, number) => {
                        format!("{path} + {}", literal(&AttributeValue::N(*number)))
                    }
                    ModelValue::Minus(number, path) => {
                        format!("({} - {path})", literal(&AttributeValue::N(*number)))
                    }
                };
                format!("{target} = {value}")
            }
        };
        sections.entry(section(&action)).or_default().push(text);
    }
    let sections = sections.iter().map(|(name, texts)| format!("{name} {}", texts.join(", ")));
    sections.collect::<Vec<_>>().join(" ")
}

pub fn in_text_order(actions: &[(&'static str, ModelAction)]) -> Vec<(&'static str, ModelAction)> {
    let mut actions = actions.to_vec();
    actions.sort_by_key(|(_, action)| section(action));
    actions
}

fn section(action: &ModelAction) -> &'static str {
    match action {
        ModelAction::Set(_) => "SET",
        ModelAction::Remove => "REMOVE",
        ModelAction::Add(_) => "ADD",
        ModelAction::Delete(_) => "DELETE",
    }
}

// ---- application --------------------------------------------------------------------------------

pub fn apply(
    actions: &[(&'static str, ModelAction)],
    old: &Attributes,
) -> Result<Attributes, UpdateError> {
    let actions = in_text_order(actions);
    let mut results = Vec::new();
    for (target, action) in &actions {
        results.push((*target, result(target, action, old)?));
    }
    let mut tree = Tree::of(&AttributeValue::M(old.clone()));
    for (target, result) in results {
        tree.place(&steps(target), result)?;
    }
    match tree.pack() {
        AttributeValue::M(item) => Ok(item),
        other => unreachable!("an item is a map, not {other:?}"),
    }
}

fn result(
    target: &str,
    action: &ModelAction,
    old: &Attributes,
) -> Result<Option<AttributeValue>, UpdateError> {
    use AttributeValue::{Bs, L, N, Ns, Ss};
    let read = |path: &str| lookup(old, path).cloned().ok_or(UpdateError::MissingAttribute);
    let wrong = Err(UpdateError::OperandType);
    match action {
        ModelAction::Remove => Ok(None),
        ModelAction::Set(ModelValue::Literal(value)) => Ok(Some(value.clone())),
        ModelAction::Set(ModelValue::Path(path)) => read(path).map(Some),
        ModelAction::Set(ModelValue::IfNotExists(path, value)) => {
            Ok(Some(read(path).unwrap_or_else(|_| value.clone())))
        }
        ModelAction::Set(ModelValue::ListAppend(path, list)) => match read(path)? {
            L(front) => Ok(Some(L([front, list.clone()].concat()))),
            _ => wrong,
        },
        ModelAction::Set(ModelValue::Plus(path, number)) => match read(path)? {
            N(left) => Ok(Some(N(left.checked_add(number)?))),
            _ => wrong,
        },
        ModelAction::Set(ModelValue::Minus(number, path)) => match read(path)? {
            N(right) => Ok(Some(N(number.checked_sub(&right)?))),
            _ => wrong,
        },
        ModelAction::Add(value) => match (lookup(old, target), value) {
            (None, value) => Ok(Some(value.clone())),
            (Some(N(left)), N(right)) => Ok(Some(N(left.checked_add(right)?))),
            (Some(Ss(left)), Ss(right)) => Ok(Some(Ss(left.union(right).cloned().collect()))),
            (Some(Ns(left)), Ns(right)) => Ok(Some(Ns(left.union(right).cloned().collect()))),
            (Some(Bs(left)), Bs(right)) => Ok(Some(Bs(left.union(right).cloned().collect()))),
            _ => wrong,
        },
        ModelAction::Delete(value) => match (lookup(old, target), value) {
            (None, _) => Ok(None),
            (Some(Ss(left)), Ss(right)) => {
                let left: std::collections::BTreeSet<_> = left.difference(right).cloned().collect();
                Ok((!left.is_empty()).then_some(Ss(left)))
            }
            (Some(Ns(left)), Ns(right)) => {
                let left: std::collections::BTreeSet<_> = left.difference(right).cloned().collect();
                Ok((!left.is_empty()).then_some(Ns(left)))
            }
            (Some(Bs(left)), Bs(right)) => {
                let left: std::collections::BTreeSet<_> = left.difference(right).cloned().collect();
                Ok((!left.is_empty()).then_some(Bs(left)))
            }
            _ => wrong,
        },
    }
}

/// A value whose lists are keyed by the original indexes.
enum Tree {
    Leaf(AttributeValue),
    Map(BTreeMap<String, Tree>),
    List(BTreeMap<usize, Tree>),
}

impl Tree {
    fn of(value: &AttributeValue) -> Tree {
        match value {
            AttributeValue::M(members) => Tree::Map(
                members.iter().map(|(name, value)| (name.clone(), Tree::of(value))).collect(),
            ),
            AttributeValue::L(elements) => {
                Tree::List(elements.iter().map(Tree::of).enumerate().collect())
            }
            other => Tree::Leaf(other.clone()),
        }
    }

    fn place(
        &mut self,
        steps: &[String],
        value: Option<AttributeValue>,
    ) -> Result<(), UpdateError> {
        let (step, rest) = steps.split_first().expect("a path has steps");
        match (self, step.parse::<usize>()) {
            (Tree::Map(members), Err(_)) => place_at(members, step.clone(), rest, value),
            (Tree::List(elements), Ok(index)) => place_at(elements, index, rest, value),
            _ => Err(UpdateError::InvalidPath),
        }
    }

    fn pack(self) -> AttributeValue {
        match self {
            Tree::Leaf(value) => value,
            Tree::Map(members) => AttributeValue::M(
                members.into_iter().map(|(name, tree)| (name, tree.pack())).collect(),
            ),
            Tree::List(elements) => {
                AttributeValue::L(elements.into_values().map(Tree::pack).collect())
            }
        }
    }
}

fn place_at<Key: Ord>(
    children: &mut BTreeMap<Key, Tree>,
    key: Key,
    rest: &[String],
    value: Option<AttributeValue>,
) -> Result<(), UpdateError> {
    if !rest.is_empty() {
        let child = children.get_mut(&key).ok_or(UpdateError::InvalidPath)?;
        return child.place(rest, value);
    }
    match value {
        Some(value) => children.insert(key, Tree::of(&value)),
        None => children.remove(&key),
    };
    Ok(())
}
