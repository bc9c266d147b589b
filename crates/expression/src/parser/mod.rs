//! From tokens to structure, by hand-written descent. Texts can nest parentheses and function calls
//! at will, so these go on explicit stacks: no text can exhaust the thread's.

mod condition;
mod projection;
mod update;

use crate::error::ExpressionFault;
use crate::lexer::{Token, TokenKind, tokenize};
use crate::limits;
use crate::operator::Section;
use crate::syntax::{RawCall, RawElement, RawName, RawOperand, RawPath, Span};

pub(crate) use condition::parse_condition;
pub(crate) use projection::parse_projection;
pub(crate) use update::parse_update;

/// A parsed text, with observations that are reported later in their order of priority.
pub(crate) struct Parsed<Syntax> {
    pub syntax: Syntax,
    pub redundant_parentheses: bool,
    pub operators: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grammar {
    Condition,
    Update,
    Projection,
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    position: usize,
    grammar: Grammar,
    redundant_parentheses: bool,
    operators: usize,
}

/// A call whose arguments are being read, and the number of parentheses opened before it.
struct OpenCall {
    parentheses: usize,
    call: RawCall,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, grammar: Grammar) -> Result<Parser<'t>, ExpressionFault> {
        if text.is_empty() {
            return Err(ExpressionFault::Empty);
        }
        if text.len() > limits::EXPRESSION_SIZE_BYTES_MAX {
            return Err(ExpressionFault::TooLong { size_bytes: text.len() });
        }
        Ok(Parser {
            text,
            tokens: tokenize(text),
            position: 0,
            grammar,
            redundant_parentheses: false,
            operators: 0,
        })
    }

    /// Checks that nothing follows.
    fn finish<Syntax>(self, syntax: Syntax) -> Result<Parsed<Syntax>, ExpressionFault> {
        if self.peek() != TokenKind::End {
            return Err(self.syntax_error());
        }
        let Parser { redundant_parentheses, operators, .. } = self;
        Ok(Parsed { syntax, redundant_parentheses, operators })
    }

    // ---- operands -------------------------------------------------------------------------------

    /// An operand in any number of parentheses. Open calls wait on a stack.
    fn operand(&mut self) -> Result<RawOperand, ExpressionFault> {
        let mut calls: Vec<OpenCall> = Vec::new();
        loop {
            let parentheses = self.open_parentheses();
            if self.at_name() && self.peek_second() == TokenKind::OpenParenthesis {
                calls.push(self.open_call(parentheses)?);
                check_depth(calls.len())?;
                continue;
            }
            let operand = self.simple_operand()?;
            let operand = self.close_parentheses_around(operand, parentheses)?;
            if let Some(operand) = self.close_calls(operand, &mut calls)? {
                return Ok(operand);
            }
        }
    }

    fn simple_operand(&mut self) -> Result<RawOperand, ExpressionFault> {
        if self.peek() == TokenKind::Value {
            return Ok(RawOperand::Value(self.advance()));
        }
        self.path().map(RawOperand::Path)
    }

    fn open_call(&mut self, parentheses: usize) -> Result<OpenCall, ExpressionFault> {
        self.count_operator();
        let function = self.advance();
        self.expect(TokenKind::OpenParenthesis)?;
        Ok(OpenCall { parentheses, call: RawCall { function, arguments: Vec::new() } })
    }

    /// Passes a finished operand to the innermost call, and that call to the next if it ends here.
    /// `None` if another argument follows.
    fn close_calls(
        &mut self,
        mut operand: RawOperand,
        calls: &mut Vec<OpenCall>,
    ) -> Result<Option<RawOperand>, ExpressionFault> {
        while let Some(OpenCall { parentheses, mut call }) = calls.pop() {
            call.arguments.push(operand);
            if self.accept(TokenKind::Comma) {
                calls.push(OpenCall { parentheses, call });
                return Ok(None);
            }
            self.expect(TokenKind::CloseParenthesis)?;
            operand = self.close_parentheses_around(RawOperand::Call(call), parentheses)?;
        }
        Ok(Some(operand))
    }

    fn open_parentheses(&mut self) -> usize {
        let mut open = 0;
        while self.accept(TokenKind::OpenParenthesis) {
            open += 1;
        }
        open
    }

    fn close_parentheses_around(
        &mut self,
        mut operand: RawOperand,
        open: usize,
    ) -> Result<RawOperand, ExpressionFault> {
        let mut closed_just_now = false;
        for _ in 0..open {
            self.expect(TokenKind::CloseParenthesis)?;
            self.redundant_parentheses |= closed_just_now;
            closed_just_now = !self.extend_grouped_path(&mut operand)?;
        }
        Ok(operand)
    }

    fn comma_separated<Item>(
        &mut self,
        items: &mut Vec<Item>,
        item: impl Fn(&mut Parser<'t>) -> Result<Item, ExpressionFault>,
    ) -> Result<(), ExpressionFault> {
        items.push(item(self)?);
        while self.accept(TokenKind::Comma) {
            items.push(item(self)?);
        }
        Ok(())
    }

    // ---- paths ----------------------------------------------------------------------------------

    fn path(&mut self) -> Result<RawPath, ExpressionFault> {
        let root = self.name()?;
        let mut below = Vec::new();
        self.path_tail(&mut below)?;
        Ok(RawPath { root, below })
    }

    /// In conditions a path may continue after its parentheses: `(a).b`. Returns whether it does.
    fn extend_grouped_path(&mut self, operand: &mut RawOperand) -> Result<bool, ExpressionFault> {
        match operand {
            RawOperand::Path(path) if self.grammar == Grammar::Condition => {
                let elements_before = path.below.len();
                self.path_tail(&mut path.below)?;
                Ok(path.below.len() > elements_before)
            }
            _ => Ok(false),
        }
    }

    fn path_tail(&mut self, below: &mut Vec<RawElement>) -> Result<(), ExpressionFault> {
        loop {
            if self.accept(TokenKind::Dot) {
                below.push(RawElement::Name(self.name()?));
            } else if self.accept(TokenKind::OpenBracket) {
                let digits = self.expect(TokenKind::Digits)?;
                below.push(RawElement::Index(digits));
                self.expect(TokenKind::CloseBracket)?;
            } else {
                return Ok(());
            }
        }
    }

    fn name(&mut self) -> Result<RawName, ExpressionFault> {
        if self.peek() == TokenKind::Name {
            return Ok(RawName::Placeholder(self.advance()));
        }
        if self.at_name() {
            return Ok(RawName::Word(self.advance()));
        }
        Err(self.syntax_error())
    }

    // ---- tokens ---------------------------------------------------------------------------------

    fn peek(&self) -> TokenKind {
        self.tokens[self.position].kind
    }

    fn peek_second(&self) -> TokenKind {
        self.tokens.get(self.position + 1).map_or(TokenKind::End, |token| token.kind)
    }

    /// Whether the next token is a word, but not a keyword of this grammar.
    fn at_name(&self) -> bool {
        self.peek() == TokenKind::Word && !self.is_keyword(self.token_text(self.position))
    }

    fn at_keyword(&self, keyword: &str) -> bool {
        self.peek() == TokenKind::Word
            && self.token_text(self.position).eq_ignore_ascii_case(keyword)
    }

    fn is_keyword(&self, word: &str) -> bool {
        let is_word = |keyword: &str| keyword.eq_ignore_ascii_case(word);
        match self.grammar {
            Grammar::Condition => ["AND", "OR", "NOT", "BETWEEN", "IN"].into_iter().any(is_word),
            Grammar::Update => Section::ALL.into_iter().map(Section::name).any(is_word),
            Grammar::Projection => false,
        }
    }

    /// Consumes the current token, which is never the end.
    fn advance(&mut self) -> Span {
        let token = self.tokens[self.position];
        self.position += 1;
        Span::new(token.start, token.end)
    }

    fn accept(&mut self, kind: TokenKind) -> bool {
        let found = self.peek() == kind;
        if found {
            self.position += 1;
        }
        found
    }

    fn accept_keyword(&mut self, keyword: &str) -> bool {
        let found = self.at_keyword(keyword);
        if found {
            self.position += 1;
        }
        found
    }

    fn expect(&mut self, kind: TokenKind) -> Result<Span, ExpressionFault> {
        if self.peek() == kind { Ok(self.advance()) } else { Err(self.syntax_error()) }
    }

    fn token_text(&self, position: usize) -> &'t str {
        let token = self.tokens[position];
        &self.text[token.start..token.end]
    }

    fn count_operator(&mut self) {
        self.operators += 1;
    }

    /// The fault for a token that the grammar can't accept. The message shows it between its
    /// neighbours.
    fn syntax_error(&self) -> ExpressionFault {
        let token = self.tokens[self.position];
        let first = self.tokens[self.position.saturating_sub(1)];
        // At the end of the text, leave out the white space after the last token.
        let last = match (token.kind, self.tokens.get(self.position + 1)) {
            (TokenKind::End, _) => first,
            (_, Some(next)) if next.kind != TokenKind::End => *next,
            _ => token,
        };
        let token = match token.kind {
            TokenKind::End => "<EOF>",
            _ => self.token_text(self.position),
        };
        ExpressionFault::Syntax {
            token: token.to_owned(),
            near: self.text[first.start..last.end].to_owned(),
        }
    }
}

/// Every call is an operator, so deeper nesting can't be legal.
fn check_depth(calls: usize) -> Result<(), ExpressionFault> {
    if calls > limits::OPERATORS_MAX {
        return Err(ExpressionFault::TooManyOperators);
    }
    Ok(())
}
