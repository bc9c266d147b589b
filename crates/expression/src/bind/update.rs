//! Binds update expressions.

use std::sync::Arc;

use zenobe_value::{AttributeType, AttributeValue, Path};

use super::{Scope, path_set};
use crate::error::{ExpressionFault, OperandType};
use crate::operator::{Operator, Section};
use crate::syntax::{RawAction, RawActionValue, RawCall, RawOperand};
use crate::update::{Action, SetOperand, SetValue, Update};

impl Scope<'_, '_> {
    /// An undefined `#name` anywhere outranks an undefined `:value`, and both outrank all type
    /// faults.
    pub(super) fn update_actions(&mut self, raw: &[RawAction]) -> Result<Update, ExpressionFault> {
        let targets = raw.iter().map(|action| {
            let target = self.path(&action.path)?;
            self.check_names(&action.value)?;
            Ok(target)
        });
        let targets: Vec<Path> = targets.collect::<Result<_, ExpressionFault>>()?;
        let values = raw.iter().map(|action| self.action_value(&action.value));
        let values: Vec<ActionValue> = values.collect::<Result<_, ExpressionFault>>()?;
        path_set::check_disjoint(&targets)?;
        check_action_types(raw, &values)?;
        values.iter().try_for_each(ActionValue::check)?;
        let actions = raw.iter().zip(targets).zip(values);
        Ok(Update {
            actions: actions.map(|((raw, path), value)| value.lower(raw.section, path)).collect(),
        })
    }

    fn check_names(&mut self, value: &RawActionValue) -> Result<(), ExpressionFault> {
        match value {
            RawActionValue::None | RawActionValue::Value(_) => Ok(()),
            RawActionValue::Operand(operand) => self.check_operand_names(operand),
            RawActionValue::Arithmetic { left, right, .. } => {
                self.check_operand_names(left)?;
                self.check_operand_names(right)
            }
        }
    }

    fn check_operand_names(&mut self, operand: &RawOperand) -> Result<(), ExpressionFault> {
        match operand {
            RawOperand::Path(path) => path.names().try_for_each(|name| self.check_name(name)),
            RawOperand::Value(_) => Ok(()),
            RawOperand::Call(call) => {
                call.arguments.iter().try_for_each(|argument| self.check_operand_names(argument))
            }
        }
    }

    fn action_value(&mut self, raw: &RawActionValue) -> Result<ActionValue, ExpressionFault> {
        Ok(match raw {
            RawActionValue::None => ActionValue::None,
            RawActionValue::Value(placeholder) => {
                ActionValue::Literal(self.shared_value(*placeholder)?)
            }
            RawActionValue::Operand(operand) => ActionValue::Operand(self.set_operand(operand)?),
            RawActionValue::Arithmetic { operator, left, right } => ActionValue::Arithmetic {
                operator: *operator,
                left: self.set_operand(left)?,
                right: self.set_operand(right)?,
            },
        })
    }

    fn set_operand(&mut self, raw: &RawOperand) -> Result<UncheckedOperand, ExpressionFault> {
        match raw {
            RawOperand::Path(path) => self.path(path).map(UncheckedOperand::Path),
            RawOperand::Value(placeholder) => {
                self.shared_value(*placeholder).map(UncheckedOperand::Literal)
            }
            RawOperand::Call(call) => self.set_call(call),
        }
    }

    fn set_call(&mut self, call: &RawCall) -> Result<UncheckedOperand, ExpressionFault> {
        let function = Operator::update_function(call.function.of(self.text))
            .expect("unknown functions were rejected by the static checks");
        // A loop instead of an iterator chain: calls nest deeply, and a chain takes many stack
        // frames.
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(self.set_operand(argument)?);
        }
        Ok(UncheckedOperand::Call { function, arguments })
    }
}

/// The right-hand side of an action before the check of its operands.
enum ActionValue {
    None,
    Literal(Arc<AttributeValue>),
    Operand(UncheckedOperand),
    Arithmetic { operator: Operator, left: UncheckedOperand, right: UncheckedOperand },
}

enum UncheckedOperand {
    Path(Path),
    Literal(Arc<AttributeValue>),
    Call { function: Operator, arguments: Vec<UncheckedOperand> },
}

/// ADD takes numbers and sets, DELETE only sets.
fn check_action_types(raw: &[RawAction], values: &[ActionValue]) -> Result<(), ExpressionFault> {
    for (RawAction { section, .. }, value) in raw.iter().zip(values) {
        let ActionValue::Literal(literal) = value else { continue };
        let operand_type = literal.attribute_type();
        let allowed = match operand_type {
            AttributeType::Ss | AttributeType::Ns | AttributeType::Bs => true,
            AttributeType::N => *section == Section::Add,
            _ => false,
        };
        if !allowed {
            return Err(ExpressionFault::ActionOperandType { section: *section, operand_type });
        }
    }
    Ok(())
}

impl ActionValue {
    fn check(&self) -> Result<(), ExpressionFault> {
        match self {
            ActionValue::None | ActionValue::Literal(_) => Ok(()),
            ActionValue::Operand(operand) => operand.check(),
            ActionValue::Arithmetic { operator, left, right } => {
                left.check()?;
                right.check()?;
                left.check_literal(*operator, AttributeType::N)?;
                right.check_literal(*operator, AttributeType::N)
            }
        }
    }

    fn lower(self, section: Section, path: Path) -> Action {
        match (section, self) {
            (Section::Remove, _) => Action::Remove { path },
            (Section::Add, ActionValue::Literal(value)) => Action::Add { path, value },
            (Section::Delete, ActionValue::Literal(value)) => Action::Delete { path, value },
            (_, value) => Action::Set { path, value: value.lower_set() },
        }
    }

    fn lower_set(self) -> SetValue {
        match self {
            ActionValue::Operand(operand) => SetValue::Operand(operand.lower()),
            ActionValue::Arithmetic { operator: Operator::Minus, left, right } => {
                SetValue::Subtract(left.lower(), right.lower())
            }
            ActionValue::Arithmetic { left, right, .. } => {
                SetValue::Add(left.lower(), right.lower())
            }
            ActionValue::None | ActionValue::Literal(_) => {
                unreachable!("the grammar gives SET an operand")
            }
        }
    }
}

impl UncheckedOperand {
    /// Checks inner functions before the one that takes them.
    fn check(&self) -> Result<(), ExpressionFault> {
        let UncheckedOperand::Call { function, arguments } = self else { return Ok(()) };
        arguments.iter().try_for_each(UncheckedOperand::check)?;
        let count = arguments.len();
        if function.function_operands() != Some(count) {
            return Err(ExpressionFault::OperandCount { operator: *function, count });
        }
        match function {
            Operator::IfNotExists => match arguments[0] {
                UncheckedOperand::Path(_) => Ok(()),
                _ => Err(ExpressionFault::PathRequired { operator: *function }),
            },
            _ => arguments
                .iter()
                .try_for_each(|argument| argument.check_literal(*function, AttributeType::L)),
        }
    }

    fn check_literal(
        &self,
        operator: Operator,
        expected: AttributeType,
    ) -> Result<(), ExpressionFault> {
        match self {
            UncheckedOperand::Literal(value) if value.attribute_type() != expected => {
                let operand_type = OperandType::Known(value.attribute_type());
                Err(ExpressionFault::OperandType { operator, operand_type })
            }
            _ => Ok(()),
        }
    }

    fn lower(self) -> SetOperand {
        let (function, arguments) = match self {
            UncheckedOperand::Path(path) => return SetOperand::Path(path),
            UncheckedOperand::Literal(value) => return SetOperand::Literal(value),
            UncheckedOperand::Call { function, arguments } => (function, arguments),
        };
        let mut arguments = arguments.into_iter();
        match (function, arguments.next(), arguments.next()) {
            (Operator::IfNotExists, Some(UncheckedOperand::Path(path)), Some(default)) => {
                SetOperand::IfNotExists { path, default: Box::new(default.lower()) }
            }
            (Operator::ListAppend, Some(front), Some(back)) => {
                SetOperand::ListAppend(Box::new(front.lower()), Box::new(back.lower()))
            }
            _ => unreachable!("the operands of {function} were checked"),
        }
    }
}
