//! The grammar of update expressions.

use super::{Grammar, Parsed, Parser};
use crate::condition::Comparator;
use crate::error::ExpressionFault;
use crate::lexer::TokenKind;
use crate::operator::{Operator, Section};
use crate::syntax::{RawAction, RawActionValue, RawUpdate};

pub(crate) fn parse_update(text: &str) -> Result<Parsed<RawUpdate>, ExpressionFault> {
    let mut parser = Parser::new(text, Grammar::Update)?;
    let mut update = RawUpdate { sections: Vec::new(), actions: Vec::new() };
    parser.section(&mut update)?;
    while parser.peek() != TokenKind::End {
        parser.section(&mut update)?;
    }
    parser.finish(update)
}

impl<'t> Parser<'t> {
    fn section(&mut self, update: &mut RawUpdate) -> Result<(), ExpressionFault> {
        let section = Section::ALL.into_iter().find(|section| self.accept_keyword(section.name()));
        let Some(section) = section else { return Err(self.syntax_error()) };
        update.sections.push(section);
        self.comma_separated(&mut update.actions, |parser| parser.action(section))
    }

    fn action(&mut self, section: Section) -> Result<RawAction, ExpressionFault> {
        let path = self.path()?;
        let value = match section {
            Section::Remove => RawActionValue::None,
            Section::Add | Section::Delete => RawActionValue::Value(self.expect(TokenKind::Value)?),
            Section::Set => {
                self.expect(TokenKind::Comparator(Comparator::Equal))?;
                self.set_value()?
            }
        };
        Ok(RawAction { section, path, value })
    }

    /// One operand, or two with an arithmetic operator, in any number of parentheses.
    fn set_value(&mut self) -> Result<RawActionValue, ExpressionFault> {
        let mut open = self.open_parentheses();
        let left = self.operand()?;
        open -= self.close_up_to(open);
        let value = match self.arithmetic_operator() {
            None => RawActionValue::Operand(left),
            Some(operator) => {
                self.count_operator();
                RawActionValue::Arithmetic { operator, left, right: self.operand()? }
            }
        };
        open -= self.close_up_to(open);
        if open > 0 {
            return Err(self.syntax_error());
        }
        Ok(value)
    }

    /// Consumes the parentheses that close here and returns how many.
    fn close_up_to(&mut self, open: usize) -> usize {
        let mut closed = 0;
        while closed < open && self.accept(TokenKind::CloseParenthesis) {
            closed += 1;
        }
        self.redundant_parentheses |= closed > 1;
        closed
    }

    fn arithmetic_operator(&mut self) -> Option<Operator> {
        if self.accept(TokenKind::Plus) {
            Some(Operator::Plus)
        } else if self.accept(TokenKind::Minus) {
            Some(Operator::Minus)
        } else {
            None
        }
    }
}
