//! The value that an action assigns, before anything is copied. Its parts borrow from the old item
//! and from the literals, so values are built only once the update is known to be legal and not too
//! large.

use std::collections::VecDeque;

use zenobe_value::AttributeValue;
use zenobe_value::limits::ITEM_SIZE_BYTES_MAX;

use super::UpdateError;

pub(super) enum Computed<'v> {
    Value(&'v AttributeValue),
    Owned(AttributeValue),
    /// The concatenation of lists.
    Lists(VecDeque<&'v [AttributeValue]>),
    /// Two sets of the same type.
    Union(&'v AttributeValue, &'v AttributeValue),
}

impl<'v> Computed<'v> {
    /// `None` unless it is a list.
    pub fn into_lists(self) -> Option<VecDeque<&'v [AttributeValue]>> {
        match self {
            Computed::Value(AttributeValue::L(elements)) => Some([elements.as_slice()].into()),
            Computed::Lists(lists) => Some(lists),
            _ => None,
        }
    }

    /// Moves the shorter sequence to the longer one, so that nesting on either side costs no more
    /// than the leaves.
    pub fn joined(
        mut front: VecDeque<&'v [AttributeValue]>,
        mut back: VecDeque<&'v [AttributeValue]>,
    ) -> Computed<'v> {
        if front.len() >= back.len() {
            front.append(&mut back);
            return Computed::Lists(front);
        }
        front.into_iter().rev().for_each(|list| back.push_front(list));
        Computed::Lists(back)
    }

    pub fn into_value(self) -> AttributeValue {
        match self {
            Computed::Value(value) => value.clone(),
            Computed::Owned(value) => value,
            Computed::Lists(lists) => {
                let mut elements = Vec::with_capacity(lists.iter().map(|list| list.len()).sum());
                lists.into_iter().for_each(|list| elements.extend_from_slice(list));
                AttributeValue::L(elements)
            }
            Computed::Union(existing, added) => union(existing, added),
        }
    }
}

fn union(existing: &AttributeValue, added: &AttributeValue) -> AttributeValue {
    use AttributeValue::{Bs, Ns, Ss};
    match (existing, added) {
        (Ss(existing), Ss(added)) => Ss(existing | added),
        (Ns(existing), Ns(added)) => Ns(existing | added),
        (Bs(existing), Bs(added)) => Bs(existing | added),
        _ => unreachable!("only sets of the same type are united"),
    }
}

/// How many bytes an update may still assign.
///
/// Targets don't overlap, so the new item contains every assigned value, and no legal update
/// exceeds the size of an item. The allowance is twice that size: slightly larger results are left
/// to the check of the whole item, which comes after the checks of index keys.
pub(super) struct Allowance {
    left_bytes: usize,
}

impl Allowance {
    pub fn new() -> Allowance {
        Allowance { left_bytes: 2 * ITEM_SIZE_BYTES_MAX }
    }

    /// Stops at the first value that exceeds the allowance, so at most one is measured in vain.
    pub fn take(&mut self, computed: &Computed<'_>) -> Result<(), UpdateError> {
        match computed {
            Computed::Value(value) => self.take_bytes(value.size_bytes()),
            Computed::Owned(value) => self.take_bytes(value.size_bytes()),
            // Every element costs a byte besides its own size.
            Computed::Lists(lists) => lists
                .iter()
                .flat_map(|list| list.iter())
                .try_for_each(|element| self.take_bytes(1 + element.size_bytes())),
            // The union holds all members of either set, so it is at least as large as the larger
            // one.
            Computed::Union(existing, added) => {
                self.take_bytes(existing.size_bytes().max(added.size_bytes()))
            }
        }
    }

    fn take_bytes(&mut self, size_bytes: usize) -> Result<(), UpdateError> {
        self.left_bytes = self.left_bytes.checked_sub(size_bytes).ok_or(UpdateError::TooLarge)?;
        Ok(())
    }
}
