//! Updates: what an UpdateItem does to an item.

mod apply;
mod arithmetic;
mod computed;

use std::sync::Arc;

use zenobe_value::{AttributeValue, Attributes, NumberError, Path, PathElement};

use crate::projection::select_paths;

/// Bound actions whose target paths neither overlap nor conflict.
///
/// # Lowering the legacy parameter
///
/// `AttributeUpdates` lowers to one action per attribute, on its top-level path:
///
/// | legacy | action |
/// |---|---|
/// | `PUT` | `Set` with a literal |
/// | `ADD` | `LegacyAdd`: also appends to lists, and names a type mismatch differently |
/// | `DELETE` without a value | `Remove` |
/// | `DELETE` with a value | `LegacyDelete` |
///
/// An empty map lowers to no action, which still creates the item.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    pub actions: Vec<Action>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Set {
        path: Path,
        value: SetValue,
    },
    Remove {
        path: Path,
    },
    /// The value is a number or a set.
    Add {
        path: Path,
        value: Arc<AttributeValue>,
    },
    /// The value is a set.
    Delete {
        path: Path,
        value: Arc<AttributeValue>,
    },
    /// The value is a number, a set or a list.
    LegacyAdd {
        path: Path,
        value: Arc<AttributeValue>,
    },
    /// The value is a set.
    LegacyDelete {
        path: Path,
        value: Arc<AttributeValue>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum SetValue {
    Operand(SetOperand),
    Add(SetOperand, SetOperand),
    Subtract(SetOperand, SetOperand),
}

#[derive(Debug, Clone, PartialEq)]
pub enum SetOperand {
    Path(Path),
    /// Shared, because an expression can use one placeholder many times.
    Literal(Arc<AttributeValue>),
    IfNotExists {
        path: Path,
        default: Box<SetOperand>,
    },
    ListAppend(Box<SetOperand>, Box<SetOperand>),
}

/// Faults that only the stored item reveals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateError {
    /// A right-hand side refers to an attribute that doesn't exist.
    MissingAttribute,
    OperandType,
    /// A target whose parent is missing or of the wrong kind.
    InvalidPath,
    NumberOverflow,
    NumberUnderflow,
    /// A wrong operand type, as the legacy actions report it.
    TypeMismatch,
    /// The assigned values alone are larger than any item. Reported only if nothing else is wrong.
    TooLarge,
}

impl Update {
    pub fn targets(&self) -> impl Iterator<Item = &Path> {
        self.actions.iter().map(Action::target)
    }

    /// Every document path that the update mentions: its targets, then those on right-hand sides.
    /// An update depends on no other top-level attributes of the item than those that these paths
    /// enter.
    pub fn paths(&self) -> Vec<&Path> {
        let mut paths: Vec<&Path> = self.targets().collect();
        for action in &self.actions {
            if let Action::Set { value, .. } = action {
                value.collect_paths(&mut paths);
            }
        }
        paths
    }

    /// The item after the update. `old` is the stored item, if there is one; `key` starts a new
    /// one. `None` if the item is missing and nothing in the update creates it.
    pub fn apply(
        &self,
        old: Option<&Attributes>,
        key: &Attributes,
    ) -> Result<Option<Attributes>, UpdateError> {
        match old {
            Some(old) => self.apply_to(old.clone()).map(Some),
            None => self.create(key),
        }
    }

    /// The result for an existing item.
    ///
    /// All right-hand sides see the old item; actions don't see each other.
    pub fn apply_to(&self, old: Attributes) -> Result<Attributes, UpdateError> {
        apply::apply(&self.actions, old)
    }

    /// The new item where there is none. `None` if nothing in the update creates it.
    pub fn create(&self, key: &Attributes) -> Result<Option<Attributes>, UpdateError> {
        apply::create(&self.actions, key)
    }

    /// The values at the targets, as nested fragments of an item: UPDATED_OLD from the old item, UPDATED_NEW
    /// from the new one.
    pub fn fragments(&self, item: &Attributes) -> Attributes {
        select_paths(self.targets(), item)
    }

    /// What UpdateItem's size check adds to the item's size without its keys. This is an observed
    /// quirk of DynamoDB.
    pub fn size_allowance_bytes(&self) -> usize {
        3 + self.actions.iter().map(Action::size_allowance_bytes).sum::<usize>()
    }
}

impl Action {
    pub fn target(&self) -> &Path {
        match self {
            Action::Set { path, .. }
            | Action::Remove { path }
            | Action::Add { path, .. }
            | Action::Delete { path, .. }
            | Action::LegacyAdd { path, .. }
            | Action::LegacyDelete { path, .. } => path,
        }
    }

    /// Whether the action creates a missing item.
    fn creates_item(&self) -> bool {
        matches!(self, Action::Set { .. } | Action::Add { .. } | Action::LegacyAdd { .. })
    }

    fn size_allowance_bytes(&self) -> usize {
        match self {
            Action::Set { path, value } => {
                let is_index = |element: &PathElement| matches!(element, PathElement::Index(_));
                let index = path.below_root().iter().any(is_index);
                let arithmetic = !matches!(value, SetValue::Operand(_));
                19 + usize::from(index) + if arithmetic { 50 } else { 0 }
            }
            Action::Add { .. } | Action::LegacyAdd { .. } => 19,
            Action::Remove { .. } | Action::Delete { .. } | Action::LegacyDelete { .. } => 2,
        }
    }
}

impl SetValue {
    fn collect_paths<'u>(&'u self, paths: &mut Vec<&'u Path>) {
        match self {
            SetValue::Operand(operand) => operand.collect_paths(paths),
            SetValue::Add(left, right) | SetValue::Subtract(left, right) => {
                left.collect_paths(paths);
                right.collect_paths(paths);
            }
        }
    }
}

impl SetOperand {
    fn collect_paths<'u>(&'u self, paths: &mut Vec<&'u Path>) {
        match self {
            SetOperand::Path(path) => paths.push(path),
            SetOperand::Literal(_) => {}
            SetOperand::IfNotExists { path, default } => {
                paths.push(path);
                default.collect_paths(paths);
            }
            SetOperand::ListAppend(first, second) => {
                first.collect_paths(paths);
                second.collect_paths(paths);
            }
        }
    }
}

impl From<NumberError> for UpdateError {
    /// A sum that needs more than 38 digits is also reported as an overflow.
    fn from(error: NumberError) -> UpdateError {
        match error {
            NumberError::Underflow => UpdateError::NumberUnderflow,
            _ => UpdateError::NumberOverflow,
        }
    }
}
