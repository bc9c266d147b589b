//! From tokens to statements. The grammar yields expressions of any kind ([`expression`]);
//! [`condition`], [`assignment`] and [`literal`] decide what an expression means in its position.
//!
//! A syntax fault ends the parsing. Of the faults of meaning only the first is kept; it is reported
//! if the rest of the text is well formed.

mod assignment;
mod condition;
mod expression;
mod literal;
mod path;
mod statement;

use super::fault::{Position, StatementFault};
use super::lexer::{StatementToken, StatementTokenKind, tokenize, unquoted};
use super::statement::Statement;
use crate::limits::STATEMENT_LENGTH_MAX;
use crate::syntax::Span;

/// How deep parentheses may nest. Collections have a limit of their own.
const DEPTH_MAX: usize = 64;

pub(super) fn parse(text: &str) -> Result<Statement, StatementFault> {
    // The API's own limit is the same and comes first; this one keeps positions in the text small.
    if text.chars().nth(STATEMENT_LENGTH_MAX).is_some() {
        return Err(StatementFault::Unreadable);
    }
    let mut parser = StatementParser::new(text)?;
    let kind = parser.statement()?;
    parser.finish()?;
    let parameters = parser.parameters;
    match parser.fault {
        Some(fault) => Err(fault),
        None => Ok(Statement { kind, parameters }),
    }
}

struct StatementParser<'t> {
    text: &'t str,
    tokens: Vec<StatementToken>,
    position: usize,
    parameters: usize,
    operators: usize,
    /// The number of open parentheses and calls.
    depth: usize,
    /// The first fault of meaning.
    fault: Option<StatementFault>,
}

impl<'t> StatementParser<'t> {
    fn new(text: &'t str) -> Result<StatementParser<'t>, StatementFault> {
        let tokens = tokenize(text)?;
        let (position, parameters, operators, depth) = (0, 0, 0, 0);
        Ok(StatementParser { text, tokens, position, parameters, operators, depth, fault: None })
    }

    /// One semicolon may end a statement.
    fn finish(&mut self) -> Result<(), StatementFault> {
        self.accept(StatementTokenKind::Semicolon);
        if self.peek() != StatementTokenKind::End {
            return Err(StatementFault::UnexpectedToken);
        }
        Ok(())
    }

    /// Records a fault of meaning, unless there is one already.
    fn keep(&mut self, fault: StatementFault) {
        self.fault.get_or_insert(fault);
    }

    /// Records a fault of meaning that outranks all others.
    fn keep_first(&mut self, fault: StatementFault) {
        self.fault = Some(fault);
    }

    // ---- tokens ---------------------------------------------------------------------------------

    fn peek(&self) -> StatementTokenKind {
        self.tokens[self.position].kind
    }

    fn peek_second(&self) -> StatementTokenKind {
        self.tokens.get(self.position + 1).map_or(StatementTokenKind::End, |token| token.kind)
    }

    fn span(&self) -> Span {
        self.tokens[self.position].span
    }

    fn text_of(&self, span: Span) -> &'t str {
        span.of(self.text)
    }

    fn place(&self, span: Span) -> Position {
        Position::of(self.text, span)
    }

    /// Consumes the current token. The end is never consumed, so there is always a current token.
    fn advance(&mut self) -> Span {
        let span = self.span();
        if self.peek() != StatementTokenKind::End {
            self.position += 1;
        }
        span
    }

    /// Like [`StatementParser::advance`], but returns the token's text.
    fn advance_text(&mut self) -> &'t str {
        let span = self.advance();
        self.text_of(span)
    }

    fn accept(&mut self, kind: StatementTokenKind) -> bool {
        let found = self.peek() == kind;
        if found {
            self.advance();
        }
        found
    }

    /// Whether the next token is this word, keyword of SQL or not.
    fn at_word(&self, word: &str) -> bool {
        matches!(self.peek(), StatementTokenKind::Keyword | StatementTokenKind::Name)
            && self.text_of(self.span()).eq_ignore_ascii_case(word)
    }

    fn second_is_word(&self, word: &str) -> bool {
        matches!(self.peek_second(), StatementTokenKind::Keyword | StatementTokenKind::Name)
            && self.text_of(self.tokens[self.position + 1].span).eq_ignore_ascii_case(word)
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.advance();
        }
        found
    }

    fn expect_word(&mut self, keyword: &'static str) -> Result<(), StatementFault> {
        match self.accept_word(keyword) {
            true => Ok(()),
            false => Err(StatementFault::ExpectedKeyword { keyword }),
        }
    }

    fn expect(
        &mut self,
        kind: StatementTokenKind,
        token: &'static str,
    ) -> Result<Span, StatementFault> {
        match self.peek() == kind {
            true => Ok(self.advance()),
            false => Err(StatementFault::ExpectedToken { token }),
        }
    }

    /// A name, quoted or not, if that is the next token.
    fn accept_name(&mut self) -> Option<String> {
        match self.peek() {
            StatementTokenKind::Name => Some(self.advance_text().to_owned()),
            StatementTokenKind::QuotedName => Some(unquoted(self.advance_text())),
            _ => None,
        }
    }

    /// The fault of the current token where a term should be.
    fn unexpected(&self) -> StatementFault {
        let is_word_operator = ["AND", "OR", "IS", "IN", "LIKE", "BETWEEN"]
            .into_iter()
            .chain(["UNION", "EXCEPT", "INTERSECT"])
            .any(|word| self.at_word(word));
        match self.peek() {
            StatementTokenKind::Comparator(_) | StatementTokenKind::OtherOperator => {
                StatementFault::UnexpectedOperator
            }
            StatementTokenKind::Keyword if is_word_operator => StatementFault::UnexpectedOperator,
            StatementTokenKind::Keyword => StatementFault::UnexpectedKeyword,
            _ => StatementFault::UnexpectedTerm,
        }
    }
}
