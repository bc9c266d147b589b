//! The meaning of an expression in a WHERE clause.

use std::sync::Arc;

use zenobe_value::{AttributeValue, Path};

use super::StatementParser;
use super::expression::{Expression, Node};
use crate::partiql::fault::StatementFault;
use crate::partiql::statement::{Term, Test, TestOperand};
use crate::syntax::Span;

impl StatementParser<'_> {
    /// A condition. A faulty expression becomes an arbitrary one; nobody uses it, because the fault
    /// is kept.
    pub(super) fn test(&mut self, expression: Expression) -> Test {
        let span = expression.span;
        match expression.node {
            Node::And(operands) => Test::And(self.tests(operands)),
            Node::Or(operands) => Test::Or(self.tests(operands)),
            Node::Not(operand) => Test::Not(Box::new(self.test(*operand))),
            Node::Compare { left, comparator, right } => {
                let left = self.test_operand(*left);
                let right = self.test_operand(*right);
                Test::Compare { left, comparator, right }
            }
            Node::Between { operands, operator, negated } => {
                let [operand, low, high] = operands.map(|operand| self.test_operand(operand));
                let written = self.text_of(operator).into();
                negation(Test::Between { operand, low, high, written }, negated)
            }
            Node::In { operand, set, negated } => negation(self.in_test(*operand, *set), negated),
            Node::Is { operand, test, negated } => {
                let operand = self.test_operand(*operand);
                negation(Test::Is { operand, test }, negated)
            }
            Node::Call { arguments } => self.function(span, arguments),
            node => Test::Value(self.test_operand(Expression { span, node })),
        }
    }

    fn tests(&mut self, operands: Vec<Expression>) -> Vec<Test> {
        operands.into_iter().map(|operand| self.test(operand)).collect()
    }

    fn in_test(&mut self, operand: Expression, set: Expression) -> Test {
        let operand = self.test_operand(operand);
        let elements = match set.node {
            Node::List(elements) | Node::Bag(elements) => elements,
            Node::Parameter(parameter) => return Test::InParameter { operand, parameter },
            _ => {
                self.keep(StatementFault::UnsupportedOperation { operation: "InCollection" });
                Vec::new()
            }
        };
        if let Err(fault) = StatementFault::check_listed(elements.len()) {
            self.keep(fault);
        }
        let list = elements.into_iter().map(|element| self.test_operand(element)).collect();
        Test::In { operand, list }
    }

    pub(super) fn test_operand(&mut self, expression: Expression) -> TestOperand {
        let span = expression.span;
        if expression.node.is_literal() {
            return TestOperand::Term(Term::Literal(self.literal(expression)));
        }
        match expression.node {
            Node::Path(path) => TestOperand::Path(path),
            Node::Parameter(parameter) => TestOperand::Term(Term::Parameter(parameter)),
            Node::Call { arguments } if self.text_of(span).eq_ignore_ascii_case("size") => {
                match self.arguments("size", arguments) {
                    Some([operand]) => TestOperand::Size(Box::new(operand)),
                    None => faulty_operand(),
                }
            }
            Node::Arithmetic { subtract, .. } => {
                let operation = if subtract { "Minus" } else { "Plus" };
                self.keep(StatementFault::UnsupportedOperation { operation });
                faulty_operand()
            }
            Node::Unsupported(operation) => {
                self.keep(StatementFault::UnsupportedOperation { operation });
                faulty_operand()
            }
            // Everything else yields a condition.
            _ => TestOperand::Test(Box::new(self.test(expression))),
        }
    }

    /// A function that yields a condition. Names ignore case.
    fn function(&mut self, span: Span, arguments: Vec<Expression>) -> Test {
        let name = self.text_of(span).to_ascii_lowercase();
        let test = match name.as_str() {
            "attribute_exists" => {
                self.path_argument("attribute_exists", arguments).map(Test::Exists)
            }
            "attribute_not_exists" => {
                self.path_argument("attribute_not_exists", arguments).map(Test::NotExists)
            }
            "attribute_type" => self
                .arguments("attribute_type", arguments)
                .map(|[operand, name]| Test::AttributeType { operand, name }),
            "begins_with" => self
                .arguments("begins_with", arguments)
                .map(|[operand, prefix]| Test::BeginsWith { operand, prefix }),
            "contains" => self
                .arguments("contains", arguments)
                .map(|[container, element]| Test::Contains { container, element }),
            // A size is a number, not a condition.
            "size" => {
                self.keep(StatementFault::UnsupportedOperation { operation: "Call" });
                None
            }
            _ => {
                self.unknown_function(span);
                None
            }
        };
        test.unwrap_or(Test::Value(faulty_operand()))
    }

    pub(super) fn unknown_function(&mut self, span: Span) {
        let function = self.text_of(span).to_ascii_lowercase();
        self.keep(StatementFault::UnknownFunction { function, position: self.place(span) });
    }

    fn path_argument(
        &mut self,
        operator: &'static str,
        arguments: Vec<Expression>,
    ) -> Option<Path> {
        match self.arguments(operator, arguments)? {
            [TestOperand::Path(path)] => Some(path),
            _ => {
                self.keep(StatementFault::PathRequired { operator });
                None
            }
        }
    }

    fn arguments<const COUNT: usize>(
        &mut self,
        operator: &'static str,
        arguments: Vec<Expression>,
    ) -> Option<[TestOperand; COUNT]> {
        let count = arguments.len();
        if count != COUNT {
            self.keep(StatementFault::OperandCount { operator, count });
            return None;
        }
        let operands: Vec<TestOperand> =
            arguments.into_iter().map(|argument| self.test_operand(argument)).collect();
        operands.try_into().ok()
    }
}

fn negation(test: Test, negated: bool) -> Test {
    if negated { Test::Not(Box::new(test)) } else { test }
}

fn faulty_operand() -> TestOperand {
    TestOperand::Term(Term::Literal(Arc::new(AttributeValue::Null)))
}
