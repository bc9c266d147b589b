//! The meaning of expressions in SET and REMOVE.

use std::sync::Arc;

use zenobe_value::{AttributeValue, Path};

use super::StatementParser;
use super::expression::{Expression, Node};
use crate::bind::check_disjoint;
use crate::condition::Comparator;
use crate::error::ExpressionFault;
use crate::partiql::fault::{Position, StatementFault};
use crate::partiql::lexer::StatementTokenKind;
use crate::partiql::statement::{Assignment, AssignmentOperand, AssignmentValue, Term};
use crate::syntax::Span;

impl StatementParser<'_> {
    /// One or more SET and REMOVE clauses.
    pub(super) fn assignments(&mut self) -> Result<Vec<Assignment>, StatementFault> {
        let mut assignments = Vec::new();
        loop {
            let clause = if self.accept_word("SET") {
                Self::set_assignment
            } else if self.accept_word("REMOVE") {
                Self::removal
            } else {
                break;
            };
            assignments.push(clause(self)?);
            while self.accept(StatementTokenKind::Comma) {
                assignments.push(clause(self)?);
            }
        }
        if assignments.is_empty() {
            return Err(StatementFault::ExpectedStatement);
        }
        self.check_targets(&assignments);
        Ok(assignments)
    }

    fn check_targets(&mut self, assignments: &[Assignment]) {
        let targets: Vec<&Path> = assignments.iter().map(Assignment::target).collect();
        match check_disjoint(&targets) {
            Ok(()) => {}
            Err(ExpressionFault::PathsConflict { one, two }) => {
                self.keep(StatementFault::PathsConflict { one, two });
            }
            Err(ExpressionFault::PathsOverlap { one, two }) => {
                self.keep(StatementFault::PathsOverlap { one, two });
            }
            Err(other) => unreachable!("paths overlap or conflict, {other:?}"),
        }
    }

    fn removal(&mut self) -> Result<Assignment, StatementFault> {
        Ok(Assignment::Remove { path: self.target()? })
    }

    fn set_assignment(&mut self) -> Result<Assignment, StatementFault> {
        let path = self.target()?;
        if !self.accept(StatementTokenKind::Comparator(Comparator::Equal)) {
            return Err(StatementFault::ExpectedToken { token: "=" });
        }
        if matches!(self.peek(), StatementTokenKind::End | StatementTokenKind::Semicolon) {
            return Err(StatementFault::UnexpectedTerm);
        }
        let value = self.expression()?;
        Ok(self.assignment(path, value))
    }

    fn target(&mut self) -> Result<Path, StatementFault> {
        match self.accept_name() {
            Some(root) => self.path_below(root),
            None => Err(self.unexpected()),
        }
    }

    fn assignment(&mut self, path: Path, value: Expression) -> Assignment {
        let span = value.span;
        if let Node::Call { arguments } = value.node {
            let name = self.text_of(span).to_ascii_lowercase();
            return match name.as_str() {
                "set_add" => {
                    let members = self.set_members("SET_ADD", &path, span, arguments);
                    let (members, argument) = members.unwrap_or_else(|| self.faulty_members(span));
                    Assignment::AddToSet { path, members, argument }
                }
                "set_delete" => {
                    let members = self.set_members("SET_DELETE", &path, span, arguments);
                    let (members, argument) = members.unwrap_or_else(|| self.faulty_members(span));
                    Assignment::DeleteFromSet { path, members, argument }
                }
                _ => {
                    let operand = self.function_operand(span, arguments);
                    Assignment::Set { path, value: AssignmentValue::Operand(operand) }
                }
            };
        }
        let value = match value.node {
            Node::Arithmetic { subtract, left, right } => {
                let left = self.operand(*left);
                let right = self.operand(*right);
                match subtract {
                    true => AssignmentValue::Subtract(left, right),
                    false => AssignmentValue::Add(left, right),
                }
            }
            node => AssignmentValue::Operand(self.operand(Expression { span, node })),
        };
        Assignment::Set { path, value }
    }

    /// The second argument, if the first is the target, and the position of the first. Binding
    /// checks that it is a set.
    fn set_members(
        &mut self,
        function: &'static str,
        path: &Path,
        span: Span,
        arguments: Vec<Expression>,
    ) -> Option<(Term, Position)> {
        let position = self.place(span);
        let Ok([first, second]) = <[Expression; 2]>::try_from(arguments) else {
            self.keep(StatementFault::SetArguments { function, position });
            return None;
        };
        if !matches!(&first.node, Node::Path(first) if first == path) {
            self.keep(StatementFault::SetTarget { function, position });
            return None;
        }
        let argument = self.place(first.span);
        let members = match second.node {
            Node::Parameter(parameter) => Term::Parameter(parameter),
            Node::Bag(_) | Node::Text(_) | Node::List(_) | Node::Map(_) | Node::Number { .. } => {
                Term::Literal(self.literal(second))
            }
            _ => {
                self.keep(StatementFault::SetArgumentType { function, position: argument });
                return None;
            }
        };
        Some((members, argument))
    }

    fn faulty_members(&self, span: Span) -> (Term, Position) {
        (Term::Literal(Arc::new(AttributeValue::Null)), self.place(span))
    }

    fn operand(&mut self, expression: Expression) -> AssignmentOperand {
        let span = expression.span;
        if expression.node.is_literal() {
            return AssignmentOperand::Term(Term::Literal(self.literal(expression)));
        }
        match expression.node {
            Node::Path(path) => AssignmentOperand::Path(path),
            Node::Parameter(parameter) => AssignmentOperand::Term(Term::Parameter(parameter)),
            Node::Call { arguments } => self.function_operand(span, arguments),
            other => {
                self.keep(StatementFault::UnsupportedOperation { operation: operation(&other) });
                faulty_operand()
            }
        }
    }

    fn function_operand(&mut self, span: Span, arguments: Vec<Expression>) -> AssignmentOperand {
        let name = self.text_of(span).to_ascii_lowercase();
        let operator = match name.as_str() {
            "list_append" => "list_append",
            "if_not_exists" => "if_not_exists",
            _ => {
                self.unknown_function(span);
                return faulty_operand();
            }
        };
        let count = arguments.len();
        let Ok([first, second]) = <[Expression; 2]>::try_from(arguments) else {
            self.keep(StatementFault::OperandCount { operator, count });
            return faulty_operand();
        };
        let (first, second) = (self.operand(first), Box::new(self.operand(second)));
        match (operator, first) {
            ("list_append", first) => AssignmentOperand::ListAppend(Box::new(first), second),
            (_, AssignmentOperand::Path(path)) => AssignmentOperand::IfNotExists(path, second),
            _ => {
                self.keep(StatementFault::PathRequired { operator });
                faulty_operand()
            }
        }
    }
}

/// PartiQL's name for an expression that can't be assigned.
fn operation(node: &Node) -> &'static str {
    match node {
        Node::And(_) => "And",
        Node::Or(_) => "Or",
        Node::Not(_) => "Not",
        Node::Compare { comparator: Comparator::Equal, .. } => "Eq",
        Node::Compare { comparator: Comparator::NotEqual, .. } => "Ne",
        Node::Compare { comparator: Comparator::Less, .. } => "Lt",
        Node::Compare { comparator: Comparator::LessOrEqual, .. } => "Lte",
        Node::Compare { comparator: Comparator::Greater, .. } => "Gt",
        Node::Compare { comparator: Comparator::GreaterOrEqual, .. } => "Gte",
        Node::Between { .. } => "Between",
        Node::In { .. } => "InCollection",
        Node::Is { .. } => "IsType",
        Node::Arithmetic { subtract: true, .. } => "Minus",
        Node::Arithmetic { subtract: false, .. } => "Plus",
        Node::Unsupported(operation) => operation,
        _ => "Call",
    }
}

fn faulty_operand() -> AssignmentOperand {
    AssignmentOperand::Term(Term::Literal(Arc::new(AttributeValue::Null)))
}
