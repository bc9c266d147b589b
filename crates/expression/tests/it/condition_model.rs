//! A naive model of the condition evaluator. It prints itself as text and evaluates itself on
//! decoded items, so one comparison covers parser, binder and evaluator.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use zenobe_value::{AttributeType, AttributeValue, Attributes, Number};

use crate::generate;

#[derive(Debug, Clone)]
pub enum Model {
    And(Vec<Model>),
    Or(Vec<Model>),
    Not(Box<Model>),
    Compare(ModelOperand, &'static str, ModelOperand),
    Between(ModelOperand, ModelOperand, ModelOperand),
    In(ModelOperand, Vec<ModelOperand>),
    Exists(&'static str),
    NotExists(&'static str),
    Type(&'static str, AttributeType),
    BeginsWith(ModelOperand, ModelOperand),
    Contains(ModelOperand, ModelOperand),
}

#[derive(Debug, Clone)]
pub enum ModelOperand {
    Path(&'static str),
    Value(AttributeValue),
    Size(&'static str),
}

use ModelOperand::{Path, Size, Value};

/// Statically valid conditions. First operands use other paths than the rest.
pub fn model() -> impl Strategy<Value = Model> {
    leaf().prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Model::And),
            vec(inner.clone(), 2..4).prop_map(Model::Or),
            inner.prop_map(|inner| Model::Not(Box::new(inner))),
        ]
    })
}

fn leaf() -> impl Strategy<Value = Model> {
    let any_operand = || prop_oneof![3 => other(generate::value()), 1 => path_two().prop_map(Size)];
    let ordered =
        || prop_oneof![3 => other(generate::ordered_scalar()), 1 => path_two().prop_map(Size)];
    let texts =
        || other(generate::ordered_scalar().prop_filter("S or B", |value| !is_number(value)));
    prop_oneof![
        (first(), equality(), any_operand())
            .prop_map(|(left, sign, right)| Model::Compare(left, sign, right)),
        (first(), ordering(), ordered())
            .prop_map(|(left, sign, right)| Model::Compare(left, sign, right)),
        (ordered(), ordering(), path_one().prop_map(Path))
            .prop_map(|(left, sign, right)| Model::Compare(left, sign, right)),
        (first(), generate::ordered_scalar(), path_two())
            .prop_map(|(operand, low, high)| Model::Between(operand, Value(low), Path(high))),
        (first(), vec(generate::number(), 2)).prop_map(|(operand, mut bounds)| {
            bounds.sort();
            let bound = |number| Value(AttributeValue::N(number));
            Model::Between(operand, bound(bounds[0]), bound(bounds[1]))
        }),
        (first(), vec(any_operand(), 1..4)).prop_map(|(operand, list)| Model::In(operand, list)),
        path_one().prop_map(Model::Exists),
        path_two().prop_map(Model::NotExists),
        (path_one(), attribute_type()).prop_map(|(path, kind)| Model::Type(path, kind)),
        (path_one(), texts()).prop_map(|(path, prefix)| Model::BeginsWith(Path(path), prefix)),
        (path_one(), any_operand())
            .prop_map(|(path, element)| Model::Contains(Path(path), element)),
    ]
}

fn first() -> impl Strategy<Value = ModelOperand> {
    prop_oneof![3 => path_one().prop_map(Path), 1 => path_one().prop_map(Size)]
}

fn other(value: impl Strategy<Value = AttributeValue>) -> impl Strategy<Value = ModelOperand> {
    prop_oneof![2 => value.prop_map(Value), 1 => path_two().prop_map(Path)]
}

fn path_one() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("m"), Just("m.x"), Just("l"), Just("l[0]"), Just("l[1].x")]
}

fn path_two() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("b"),
        Just("m.y"),
        Just("m.x.y"),
        Just("l[1]"),
        Just("l[0][1]"),
        Just("absent")
    ]
}

fn equality() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("="), Just("<>")]
}

fn ordering() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("<"), Just("<="), Just(">"), Just(">=")]
}

fn attribute_type() -> impl Strategy<Value = AttributeType> {
    proptest::sample::select(AttributeType::ALL.to_vec())
}

fn is_number(value: &AttributeValue) -> bool {
    value.attribute_type() == AttributeType::N
}

// ---- printing -----------------------------------------------------------------------------------

impl Model {
    /// The text, with a placeholder for each literal.
    pub fn print(&self, values: &mut BTreeMap<String, AttributeValue>) -> String {
        match self {
            Model::And(models) => join(models, " AND ", |model| match model {
                Model::Or(_) | Model::And(_) => format!("({})", model.print(values)),
                _ => model.print(values),
            }),
            Model::Or(models) => join(models, "\tor ", |model| match model {
                Model::Or(_) => format!("({})", model.print(values)),
                _ => model.print(values),
            }),
            Model::Not(model) => match **model {
                Model::And(_) | Model::Or(_) => format!("NOT ({})", model.print(values)),
                _ => format!("not {}", model.print(values)),
            },
            Model::Compare(left, sign, right) => {
                format!("{}{sign}{}", left.print(values), right.print(values))
            }
            Model::Between(operand, low, high) => {
                let (operand, low) = (operand.print(values), low.print(values));
                format!("{operand} BETWEEN {low} AND ({})", high.print(values))
            }
            Model::In(operand, list) => {
                let operand = operand.print(values);
                format!("({operand}) in ({})", join(list, ", ", |listed| listed.print(values)))
            }
            Model::Exists(path) => format!("attribute_exists({path})"),
            Model::NotExists(path) => format!("attribute_not_exists ( {path} )"),
            Model::Type(path, attribute_type) => {
                let name = Value(AttributeValue::S(attribute_type.to_string()));
                format!("attribute_type({path}, {})", name.print(values))
            }
            Model::BeginsWith(operand, prefix) => {
                format!("begins_with({}, {})", operand.print(values), prefix.print(values))
            }
            Model::Contains(container, element) => {
                format!("contains({}, {})", container.print(values), element.print(values))
            }
        }
    }
}

impl ModelOperand {
    fn print(&self, values: &mut BTreeMap<String, AttributeValue>) -> String {
        match self {
            Path(path) => (*path).to_owned(),
            Size(path) => format!("size({path})"),
            Value(value) => {
                let placeholder = format!(":v{}", values.len());
                values.insert(placeholder.clone(), value.clone());
                placeholder
            }
        }
    }
}

fn join<T>(items: &[T], separator: &str, print: impl FnMut(&T) -> String) -> String {
    items.iter().map(print).collect::<Vec<_>>().join(separator)
}

// ---- evaluation ---------------------------------------------------------------------------------

impl Model {
    pub fn evaluate(&self, item: &Attributes) -> bool {
        match self {
            Model::And(models) => models.iter().all(|model| model.evaluate(item)),
            Model::Or(models) => models.iter().any(|model| model.evaluate(item)),
            Model::Not(model) => !model.evaluate(item),
            Model::Compare(left, sign, right) => {
                compare(left.resolve(item).as_ref(), sign, right.resolve(item).as_ref())
            }
            Model::Between(operand, low, high) => {
                let operand = operand.resolve(item);
                compare(low.resolve(item).as_ref(), "<=", operand.as_ref())
                    && compare(operand.as_ref(), "<=", high.resolve(item).as_ref())
            }
            Model::In(operand, list) => {
                let operand = operand.resolve(item);
                list.iter().any(|listed| operand.is_some() && operand == listed.resolve(item))
            }
            Model::Exists(path) => lookup(item, path).is_some(),
            Model::NotExists(path) => lookup(item, path).is_none(),
            Model::Type(path, attribute_type) => {
                lookup(item, path).map(AttributeValue::attribute_type) == Some(*attribute_type)
            }
            Model::BeginsWith(operand, prefix) => {
                match (operand.resolve(item), prefix.resolve(item)) {
                    (Some(AttributeValue::S(value)), Some(AttributeValue::S(prefix))) => {
                        value.starts_with(&prefix)
                    }
                    (Some(AttributeValue::B(value)), Some(AttributeValue::B(prefix))) => {
                        value.starts_with(&prefix)
                    }
                    _ => false,
                }
            }
            Model::Contains(container, element) => {
                match (container.resolve(item), element.resolve(item)) {
                    (Some(container), Some(element)) => contains(&container, &element),
                    _ => false,
                }
            }
        }
    }
}

impl ModelOperand {
    fn resolve(&self, item: &Attributes) -> Option<AttributeValue> {
        match self {
            Value(value) => Some(value.clone()),
            Path(path) => lookup(item, path).cloned(),
            Size(path) => {
                let size = match lookup(item, path)? {
                    AttributeValue::S(text) => text.encode_utf16().count(),
                    AttributeValue::B(bytes) => bytes.len(),
                    AttributeValue::Ss(members) => members.len(),
                    AttributeValue::Ns(members) => members.len(),
                    AttributeValue::Bs(members) => members.len(),
                    AttributeValue::L(elements) => elements.len(),
                    AttributeValue::M(members) => members.len(),
                    _ => return None,
                };
                Some(AttributeValue::N(Number::from(size as u64)))
            }
        }
    }
}

fn compare(left: Option<&AttributeValue>, sign: &str, right: Option<&AttributeValue>) -> bool {
    let equal = left.is_some() && left == right;
    let ordering = match (left, right) {
        (Some(AttributeValue::S(left)), Some(AttributeValue::S(right))) => {
            Some(left.as_bytes().cmp(right.as_bytes()))
        }
        (Some(AttributeValue::N(left)), Some(AttributeValue::N(right))) => Some(left.cmp(right)),
        (Some(AttributeValue::B(left)), Some(AttributeValue::B(right))) => Some(left.cmp(right)),
        _ => None,
    };
    match sign {
        "=" => equal,
        "<>" => !equal,
        "<" => ordering == Some(Ordering::Less),
        "<=" => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        ">" => ordering == Some(Ordering::Greater),
        ">=" => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
        other => unreachable!("{other} is no comparator"),
    }
}

fn contains(container: &AttributeValue, element: &AttributeValue) -> bool {
    match (container, element) {
        (AttributeValue::S(text), AttributeValue::S(part)) => text.contains(part),
        (AttributeValue::B(bytes), AttributeValue::B(part)) => {
            (0..=bytes.len()).any(|start| bytes[start..].starts_with(part))
        }
        (AttributeValue::Ss(members), AttributeValue::S(member)) => members.contains(member),
        (AttributeValue::Ns(members), AttributeValue::N(member)) => members.contains(member),
        (AttributeValue::Bs(members), AttributeValue::B(member)) => members.contains(member),
        (AttributeValue::L(elements), element) => elements.contains(element),
        _ => false,
    }
}

/// Follows a path in its text form.
pub fn lookup<'i>(item: &'i Attributes, path: &str) -> Option<&'i AttributeValue> {
    let mut steps = steps(path).into_iter();
    let root = item.get(&steps.next()?)?;
    steps.try_fold(root, |value, step| match (value, step.parse::<usize>()) {
        (AttributeValue::L(elements), Ok(index)) => elements.get(index),
        (AttributeValue::M(members), Err(_)) => members.get(&step),
        _ => None,
    })
}

/// `l[1].x` as `l`, `1`, `x`.
pub fn steps(path: &str) -> Vec<String> {
    path.split(['.', '[', ']']).filter(|step| !step.is_empty()).map(str::to_owned).collect()
}
