//! Computed values: the right-hand sides of SET, and the results of ADD and DELETE.

use std::collections::BTreeSet;

use zenobe_value::{AttributeValue, Attributes, Number};

use super::computed::Computed;
use super::{SetOperand, SetValue, UpdateError};

impl SetValue {
    pub(super) fn evaluate<'v>(&'v self, old: &'v Attributes) -> Result<Computed<'v>, UpdateError> {
        let (left, right, combine): (_, _, fn(&Number, &Number) -> _) = match self {
            SetValue::Operand(operand) => return operand.evaluate(old),
            SetValue::Add(left, right) => (left, right, |left, right| left.checked_add(right)),
            SetValue::Subtract(left, right) => (left, right, |left, right| left.checked_sub(right)),
        };
        match (left.evaluate(old)?, right.evaluate(old)?) {
            (
                Computed::Value(AttributeValue::N(left)),
                Computed::Value(AttributeValue::N(right)),
            ) => Ok(Computed::Owned(AttributeValue::N(combine(left, right)?))),
            _ => Err(UpdateError::OperandType),
        }
    }
}

impl SetOperand {
    fn evaluate<'v>(&'v self, old: &'v Attributes) -> Result<Computed<'v>, UpdateError> {
        match self {
            SetOperand::Literal(value) => Ok(Computed::Value(value)),
            SetOperand::Path(path) => {
                path.lookup(old).map(Computed::Value).ok_or(UpdateError::MissingAttribute)
            }
            SetOperand::IfNotExists { path, default } => match path.lookup(old) {
                Some(value) => Ok(Computed::Value(value)),
                None => default.evaluate(old),
            },
            SetOperand::ListAppend(front, back) => {
                let (front, back) = (front.evaluate(old)?, back.evaluate(old)?);
                match (front.into_lists(), back.into_lists()) {
                    (Some(front), Some(back)) => Ok(Computed::joined(front, back)),
                    _ => Err(UpdateError::OperandType),
                }
            }
        }
    }
}

/// ADD: the sum of numbers or the union of sets.
pub(super) fn add<'v>(
    existing: Option<&'v AttributeValue>,
    value: &'v AttributeValue,
) -> Result<Computed<'v>, UpdateError> {
    use AttributeValue::{Bs, N, Ns, Ss};
    match (existing, value) {
        (None, value) => Ok(Computed::Value(value)),
        (Some(N(existing)), N(value)) => Ok(Computed::Owned(N(existing.checked_add(value)?))),
        (Some(existing @ Ss(_)), Ss(_))
        | (Some(existing @ Ns(_)), Ns(_))
        | (Some(existing @ Bs(_)), Bs(_)) => Ok(Computed::Union(existing, value)),
        _ => Err(UpdateError::OperandType),
    }
}

/// The legacy ADD also appends to lists.
pub(super) fn legacy_add<'v>(
    existing: Option<&'v AttributeValue>,
    value: &'v AttributeValue,
) -> Result<Computed<'v>, UpdateError> {
    match (existing, value) {
        (Some(AttributeValue::L(front)), AttributeValue::L(back)) => {
            Ok(Computed::Lists([front.as_slice(), back].into()))
        }
        _ => add(existing, value).map_err(as_type_mismatch),
    }
}

/// DELETE: the difference of sets. `None` when no member is left, because a set is never empty.
pub(super) fn delete(
    existing: &AttributeValue,
    value: &AttributeValue,
) -> Result<Option<AttributeValue>, UpdateError> {
    use AttributeValue::{Bs, Ns, Ss};
    Ok(match (existing, value) {
        (Ss(existing), Ss(value)) => non_empty(existing - value).map(Ss),
        (Ns(existing), Ns(value)) => non_empty(existing - value).map(Ns),
        (Bs(existing), Bs(value)) => non_empty(existing - value).map(Bs),
        _ => return Err(UpdateError::OperandType),
    })
}

pub(super) fn legacy_delete(
    existing: &AttributeValue,
    value: &AttributeValue,
) -> Result<Option<AttributeValue>, UpdateError> {
    delete(existing, value).map_err(as_type_mismatch)
}

fn non_empty<Member>(members: BTreeSet<Member>) -> Option<BTreeSet<Member>> {
    (!members.is_empty()).then_some(members)
}

fn as_type_mismatch(error: UpdateError) -> UpdateError {
    match error {
        UpdateError::OperandType => UpdateError::TypeMismatch,
        other => other,
    }
}
