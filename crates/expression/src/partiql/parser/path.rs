//! Document paths.

use zenobe_value::{Path, PathElement};

use super::StatementParser;
use crate::limits::{LIST_INDEX_MAX, PATH_ELEMENTS_MAX};
use crate::partiql::fault::StatementFault;
use crate::partiql::lexer::StatementTokenKind;
use crate::syntax::Span;

impl StatementParser<'_> {
    /// The elements after a path's root.
    pub(super) fn path_below(&mut self, root: String) -> Result<Path, StatementFault> {
        let mut below = Vec::new();
        loop {
            if self.accept(StatementTokenKind::Dot) {
                below.extend(self.dot_component()?);
            } else if self.accept(StatementTokenKind::OpenBracket) {
                below.extend(self.index()?);
            } else {
                break;
            }
        }
        let is_empty =
            |element: &PathElement| matches!(element, PathElement::Name(name) if name.is_empty());
        if root.is_empty() || below.iter().any(is_empty) {
            self.keep(StatementFault::EmptyName);
        }
        let levels = 1 + below.len();
        if levels > PATH_ELEMENTS_MAX {
            self.keep(StatementFault::PathTooDeep { levels });
        }
        Ok(Path::new(root, below))
    }

    /// A name. `None` for a wildcard, which no path may have here.
    fn dot_component(&mut self) -> Result<Option<PathElement>, StatementFault> {
        if self.peek() == StatementTokenKind::Star {
            let star = self.advance();
            self.unexpected_component(star);
            return Ok(None);
        }
        match self.accept_name() {
            Some(name) => Ok(Some(PathElement::Name(name.into()))),
            None => Err(StatementFault::InvalidDotComponent),
        }
    }

    /// The index between brackets. `None` for anything but a list index in range.
    fn index(&mut self) -> Result<Option<PathElement>, StatementFault> {
        let mut negative = false;
        let signed = self.position;
        loop {
            match self.peek() {
                StatementTokenKind::Plus => {}
                StatementTokenKind::Minus => negative = !negative,
                _ => break,
            }
            self.advance();
        }
        let element = match self.peek() {
            StatementTokenKind::Number => {
                let digits = self.advance();
                self.list_index(negative, digits)
            }
            StatementTokenKind::Text | StatementTokenKind::Parameter | StatementTokenKind::Star
                if self.position == signed =>
            {
                let component = self.advance();
                self.unexpected_component(component);
                None
            }
            _ => return Err(self.unexpected()),
        };
        self.expect(StatementTokenKind::CloseBracket, "RIGHT_BRACKET")?;
        Ok(element)
    }

    fn list_index(&mut self, negative: bool, digits: Span) -> Option<PathElement> {
        let text = self.text_of(digits);
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            self.unexpected_component(digits);
            return None;
        }
        let index = text.parse::<usize>().ok().filter(|index| *index <= LIST_INDEX_MAX);
        if let Some(index) = index.filter(|index| *index == 0 || !negative) {
            return Some(PathElement::Index(index));
        }
        let index = format!("{}{text}", if negative { "-" } else { "" });
        self.keep(StatementFault::IndexOutOfRange { index, position: self.place(digits) });
        None
    }

    pub(super) fn unexpected_component(&mut self, component: Span) {
        let position = self.place(component);
        self.keep(StatementFault::UnexpectedPathComponent { position });
    }
}
