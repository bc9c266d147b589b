//! Values computed from values: the right-hand sides of SET, and what ADD and DELETE make of an attribute.

use std::collections::BTreeSet;

use zenobe_value::{AttributeValue, Attributes, Number};

use super::{SetOperand, SetValue, UpdateError};

impl SetValue {
    pub(super) fn evaluate(&self, old: &Attributes) -> Result<AttributeValue, UpdateError> {
        let (left, right, combine): (_, _, fn(&Number, &Number) -> _) = match self {
            SetValue::Operand(operand) => return operand.evaluate(old),
            SetValue::Add(left, right) => (left, right, |left, right| left.checked_add(right)),
            SetValue::Subtract(left, right) => (left, right, |left, right| left.checked_sub(right)),
        };
        match (left.evaluate(old)?, right.evaluate(old)?) {
            (AttributeValue::N(left), AttributeValue::N(right)) => {
                Ok(AttributeValue::N(combine(&left, &right)?))
            }
            _ => Err(UpdateError::OperandType),
        }
    }
}

impl SetOperand {
    fn evaluate(&self, old: &Attributes) -> Result<AttributeValue, UpdateError> {
        match self {
            SetOperand::Literal(value) => Ok(value.clone()),
            SetOperand::Path(path) => {
                path.lookup(old).cloned().ok_or(UpdateError::MissingAttribute)
            }
            SetOperand::IfNotExists { path, default } => match path.lookup(old) {
                Some(value) => Ok(value.clone()),
                None => default.evaluate(old),
            },
            SetOperand::ListAppend(front, back) => {
                match (front.evaluate(old)?, back.evaluate(old)?) {
                    (AttributeValue::L(mut front), AttributeValue::L(back)) => {
                        front.extend(back);
                        Ok(AttributeValue::L(front))
                    }
                    _ => Err(UpdateError::OperandType),
                }
            }
        }
    }
}

/// ADD: the sum of numbers or the union of sets.
pub(super) fn add(
    existing: Option<&AttributeValue>,
    value: &AttributeValue,
) -> Result<AttributeValue, UpdateError> {
    use AttributeValue::{Bs, N, Ns, Ss};
    match (existing, value) {
        (None, value) => Ok(value.clone()),
        (Some(N(existing)), N(value)) => Ok(N(existing.checked_add(value)?)),
        (Some(Ss(existing)), Ss(value)) => Ok(Ss(existing | value)),
        (Some(Ns(existing)), Ns(value)) => Ok(Ns(existing | value)),
        (Some(Bs(existing)), Bs(value)) => Ok(Bs(existing | value)),
        _ => Err(UpdateError::OperandType),
    }
}

/// The legacy ADD also appends to lists.
pub(super) fn legacy_add(
    existing: Option<&AttributeValue>,
    value: &AttributeValue,
) -> Result<AttributeValue, UpdateError> {
    match (existing, value) {
        (Some(AttributeValue::L(front)), AttributeValue::L(back)) => {
            Ok(AttributeValue::L(front.iter().chain(back).cloned().collect()))
        }
        _ => add(existing, value).map_err(as_type_mismatch),
    }
}

/// DELETE: the difference of sets; `None` when no member is left, since a set is never empty.
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
