//! The one evaluator of conditions and filters. It reads stored bytes and builds no tree.
//!
//! There is no third truth value. A missing operand makes a leaf false, except `<>` and
//! `attribute_not_exists`, which it makes true. NOT inverts whatever the leaf yields.

use std::cmp::Ordering;

use memchr::memmem;
use zenobe_value::{AttributeValue, EncodedValue, ItemRef, Number, Path, ValueRef, ValueView};

use crate::condition::{Comparator, Condition, Operand};

impl Condition {
    /// Whether the condition holds. For an item that doesn't exist every path is missing, even its
    /// key.
    pub fn evaluate(&self, item: Option<ItemRef<'_>>) -> bool {
        match self {
            Condition::And(conditions) => conditions.iter().all(|each| each.evaluate(item)),
            Condition::Or(conditions) => conditions.iter().any(|each| each.evaluate(item)),
            Condition::Not(condition) => !condition.evaluate(item),
            Condition::Compare { left, comparator, right } => {
                compare(&left.resolve(item), *comparator, &right.resolve(item))
            }
            Condition::Between { operand, low, high } => {
                let operand = operand.resolve(item);
                compare(&operand, Comparator::GreaterOrEqual, &low.resolve(item))
                    && compare(&operand, Comparator::LessOrEqual, &high.resolve(item))
            }
            Condition::In { operand, list } => {
                let operand = operand.resolve(item);
                let equals =
                    |listed: &Operand| compare(&operand, Comparator::Equal, &listed.resolve(item));
                list.iter().any(equals)
            }
            Condition::AttributeExists(path) => lookup(item, path).is_some(),
            Condition::AttributeNotExists(path) => lookup(item, path).is_none(),
            Condition::AttributeType { operand, attribute_type } => {
                let operand = operand.resolve(item);
                operand.value().is_some_and(|value| value.attribute_type() == *attribute_type)
            }
            Condition::BeginsWith { operand, prefix } => {
                both(&operand.resolve(item), &prefix.resolve(item), begins_with)
            }
            Condition::Contains { container, element } => {
                both(&container.resolve(item), &element.resolve(item), contains)
            }
        }
    }
}

/// The value of an operand in this item.
enum Resolved<'v> {
    Missing,
    Borrowed(ValueRef<'v>),
    /// Computed values: sizes and truth values.
    Owned(EncodedValue),
}

impl Operand {
    fn resolve<'v>(&'v self, item: Option<ItemRef<'v>>) -> Resolved<'v> {
        match self {
            Operand::Literal(literal) => Resolved::Borrowed(literal.as_value()),
            Operand::Path(path) => lookup(item, path).map_or(Resolved::Missing, Resolved::Borrowed),
            Operand::Size(path) => {
                let size = lookup(item, path).and_then(size_of).map(Number::from);
                size.map_or(Resolved::Missing, |size| {
                    Resolved::Owned(EncodedValue::encode(&AttributeValue::N(size)))
                })
            }
            Operand::Test(condition) => {
                let holds = AttributeValue::Bool(condition.evaluate(item));
                Resolved::Owned(EncodedValue::encode(&holds))
            }
        }
    }
}

impl Resolved<'_> {
    fn value(&self) -> Option<ValueRef<'_>> {
        match self {
            Resolved::Missing => None,
            Resolved::Borrowed(value) => Some(*value),
            Resolved::Owned(value) => Some(value.as_value()),
        }
    }
}

/// The result of the function `size`: UTF-16 code units of strings, bytes of binaries, members of
/// collections. Numbers, booleans and nulls have no size.
pub(crate) fn size_of(value: ValueRef<'_>) -> Option<u64> {
    let size = match value.view() {
        ValueView::S(text) => text.chars().map(char::len_utf16).sum(),
        ValueView::B(bytes) => bytes.len(),
        ValueView::Ss(members) | ValueView::Ns(members) | ValueView::Bs(members) => members.len(),
        ValueView::L(elements) => elements.len(),
        ValueView::M(members) => members.len(),
        ValueView::N(_) | ValueView::Bool(_) | ValueView::Null => return None,
    };
    Some(size as u64)
}

fn lookup<'v>(item: Option<ItemRef<'v>>, path: &Path) -> Option<ValueRef<'v>> {
    item.and_then(|item| item.lookup(path))
}

fn both(
    left: &Resolved<'_>,
    right: &Resolved<'_>,
    holds: impl Fn(ValueRef<'_>, ValueRef<'_>) -> bool,
) -> bool {
    match (left.value(), right.value()) {
        (Some(left), Some(right)) => holds(left, right),
        _ => false,
    }
}

fn compare(left: &Resolved<'_>, comparator: Comparator, right: &Resolved<'_>) -> bool {
    let ordered = |holds: fn(Ordering) -> bool| {
        both(left, right, |left, right| left.compare(&right).is_some_and(holds))
    };
    match comparator {
        Comparator::Equal => both(left, right, |left, right| left == right),
        Comparator::NotEqual => !both(left, right, |left, right| left == right),
        Comparator::Less => ordered(Ordering::is_lt),
        Comparator::LessOrEqual => ordered(Ordering::is_le),
        Comparator::Greater => ordered(Ordering::is_gt),
        Comparator::GreaterOrEqual => ordered(Ordering::is_ge),
    }
}

fn begins_with(value: ValueRef<'_>, prefix: ValueRef<'_>) -> bool {
    match (value.view(), prefix.view()) {
        (ValueView::S(value), ValueView::S(prefix)) => value.starts_with(prefix),
        (ValueView::B(value), ValueView::B(prefix)) => value.starts_with(prefix),
        _ => false,
    }
}

fn contains(container: ValueRef<'_>, element: ValueRef<'_>) -> bool {
    match (container.view(), element.view()) {
        (ValueView::S(text), ValueView::S(part)) => {
            contains_bytes(text.as_bytes(), part.as_bytes())
        }
        (ValueView::B(bytes), ValueView::B(part)) => contains_bytes(bytes, part),
        (ValueView::Ss(members), ValueView::S(member)) => members.contains(member.as_bytes()),
        (ValueView::Ns(members), ValueView::N(member)) => members.contains(member.as_bytes()),
        (ValueView::Bs(members), ValueView::B(member)) => members.contains(member),
        (ValueView::L(elements), _) => elements.iter().any(|each| each == element),
        _ => false,
    }
}

/// Takes time linear in both, whatever they contain: callers choose the values that filters run on.
/// In UTF-8, searching text means searching bytes.
fn contains_bytes(bytes: &[u8], part: &[u8]) -> bool {
    part.len() <= bytes.len() && memmem::find(bytes, part).is_some()
}
