//! Expressions of any kind, by operator precedence. AND and OR are flat, so a long condition
//! doesn't nest deeply.

use zenobe_value::Path;

use super::{DEPTH_MAX, StatementParser};
use crate::condition::Comparator;
use crate::limits::OPERATORS_MAX;
use crate::partiql::fault::StatementFault;
use crate::partiql::keywords::is_function;
use crate::partiql::lexer::{StatementTokenKind, unquoted};
use crate::partiql::statement::TypeTest;
use crate::syntax::Span;

#[derive(Debug)]
pub(super) struct Expression {
    /// Its first token.
    pub span: Span,
    pub node: Node,
}

#[derive(Debug)]
pub(super) enum Node {
    Path(Path),
    Text(String),
    /// The digits, and whether an odd number of minus signs precedes them.
    Number {
        digits: Span,
        negative: bool,
    },
    Bool(bool),
    Null,
    Parameter(usize),
    List(Vec<Expression>),
    Bag(Vec<Expression>),
    Map(Vec<(String, Expression)>),
    Call {
        arguments: Vec<Expression>,
    },
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    Compare {
        left: Box<Expression>,
        comparator: Comparator,
        right: Box<Expression>,
    },
    Between {
        /// The operand and its bounds.
        operands: Box<[Expression; 3]>,
        operator: Span,
        negated: bool,
    },
    In {
        operand: Box<Expression>,
        set: Box<Expression>,
        negated: bool,
    },
    Is {
        operand: Box<Expression>,
        test: TypeTest,
        negated: bool,
    },
    /// Addition or subtraction.
    Arithmetic {
        subtract: bool,
        left: Box<Expression>,
        right: Box<Expression>,
    },
    /// An expression that SQL has and DynamoDB lacks.
    Unsupported(&'static str),
}

impl Node {
    pub(super) fn is_literal(&self) -> bool {
        matches!(
            self,
            Node::Text(_)
                | Node::Number { .. }
                | Node::Bool(_)
                | Node::Null
                | Node::List(_)
                | Node::Bag(_)
                | Node::Map(_)
        )
    }
}

/// How tightly operators bind, loosest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    Or,
    And,
    Not,
    Equality,
    Comparison,
    Addition,
    Multiplication,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Infix {
    Or,
    And,
    Compare(Comparator),
    Is,
    In,
    NotIn,
    Between,
    NotBetween,
    Like,
    Plus,
    Minus,
    Other(&'static str),
}

impl Infix {
    fn precedence(self) -> Precedence {
        match self {
            Infix::Or => Precedence::Or,
            Infix::And => Precedence::And,
            Infix::Compare(comparator) if !comparator.is_ordering() => Precedence::Equality,
            Infix::Is | Infix::In | Infix::NotIn => Precedence::Equality,
            Infix::Compare(_) | Infix::Between | Infix::NotBetween | Infix::Like => {
                Precedence::Comparison
            }
            Infix::Plus | Infix::Minus => Precedence::Addition,
            Infix::Other(_) => Precedence::Multiplication,
        }
    }

    fn tokens(self) -> usize {
        if matches!(self, Infix::NotIn | Infix::NotBetween) { 2 } else { 1 }
    }
}

impl StatementParser<'_> {
    pub(super) fn expression(&mut self) -> Result<Expression, StatementFault> {
        self.expression_above(None)
    }

    /// An expression whose operators bind more tightly than the given one.
    fn expression_above(
        &mut self,
        floor: Option<Precedence>,
    ) -> Result<Expression, StatementFault> {
        let mut left = self.prefixed()?;
        while let Some(infix) = self.infix() {
            if floor.is_some_and(|floor| infix.precedence() <= floor) {
                break;
            }
            self.count_operator()?;
            let operator = self.span();
            self.position += infix.tokens();
            left = self.infix_expression(left, infix, operator)?;
        }
        Ok(left)
    }

    fn infix(&self) -> Option<Infix> {
        let word = |word: &str| self.at_word(word);
        Some(match self.peek() {
            StatementTokenKind::Comparator(comparator) => Infix::Compare(comparator),
            StatementTokenKind::Plus => Infix::Plus,
            StatementTokenKind::Minus => Infix::Minus,
            StatementTokenKind::Star => Infix::Other("Times"),
            StatementTokenKind::OtherOperator => match self.text_of(self.span()) {
                "/" => Infix::Other("Divide"),
                "%" => Infix::Other("Modulo"),
                _ => Infix::Other("Concat"),
            },
            StatementTokenKind::Keyword if word("AND") => Infix::And,
            StatementTokenKind::Keyword if word("OR") => Infix::Or,
            StatementTokenKind::Keyword if word("IS") => Infix::Is,
            StatementTokenKind::Keyword if word("IN") => Infix::In,
            StatementTokenKind::Keyword if word("BETWEEN") => Infix::Between,
            StatementTokenKind::Keyword if word("LIKE") => Infix::Like,
            StatementTokenKind::Keyword if word("NOT") && self.second_is_word("IN") => Infix::NotIn,
            StatementTokenKind::Keyword if word("NOT") && self.second_is_word("BETWEEN") => {
                Infix::NotBetween
            }
            _ => return None,
        })
    }

    fn infix_expression(
        &mut self,
        left: Expression,
        infix: Infix,
        operator: Span,
    ) -> Result<Expression, StatementFault> {
        let span = left.span;
        if infix == Infix::Is {
            let negated = self.accept_word("NOT");
            let test = self.type_test()?;
            let node = Node::Is { operand: Box::new(left), test, negated };
            return Ok(Expression { span, node });
        }
        if matches!(self.peek(), StatementTokenKind::End | StatementTokenKind::Semicolon) {
            return Err(StatementFault::MissingRightHandSide);
        }
        let node = match infix {
            Infix::In | Infix::NotIn => {
                let set = Box::new(self.in_set()?);
                Node::In { operand: Box::new(left), set, negated: infix == Infix::NotIn }
            }
            Infix::Between | Infix::NotBetween => {
                let low = self.expression_above(Some(Precedence::Comparison))?;
                self.expect_word("AND")?;
                let high = self.expression_above(Some(Precedence::Comparison))?;
                let operands = Box::new([left, low, high]);
                Node::Between { operands, operator, negated: infix == Infix::NotBetween }
            }
            _ => {
                let right = self.expression_above(Some(infix.precedence()))?;
                joined(left, infix, right)
            }
        };
        Ok(Expression { span, node })
    }

    /// IN takes its values in parentheses or in any collection.
    fn in_set(&mut self) -> Result<Expression, StatementFault> {
        if self.peek() != StatementTokenKind::OpenParenthesis {
            return self.expression_above(Some(Precedence::Equality));
        }
        let span = self.advance();
        let elements = self.elements(StatementTokenKind::CloseParenthesis, "RIGHT_PAREN")?;
        Ok(Expression { span, node: Node::List(elements) })
    }

    /// A term and the signs and negations before it.
    fn prefixed(&mut self) -> Result<Expression, StatementFault> {
        let span = self.span();
        if self.at_word("NOT") {
            return self.negation();
        }
        let mut negative = false;
        while matches!(self.peek(), StatementTokenKind::Plus | StatementTokenKind::Minus) {
            negative ^= self.peek() == StatementTokenKind::Minus;
            self.advance();
        }
        let signed = self.span() != span;
        let mut term = self.term()?;
        term.node = match term.node {
            Node::Number { digits, .. } => Node::Number { digits, negative },
            node if !signed => node,
            _ if negative => Node::Unsupported("Negate"),
            _ => Node::Unsupported("UnaryPlus"),
        };
        Ok(term)
    }

    /// Reduces many negations to one or two, which mean the same and nest less.
    fn negation(&mut self) -> Result<Expression, StatementFault> {
        let span = self.span();
        let mut count = 0;
        while self.accept_word("NOT") {
            self.count_operator()?;
            count += 1;
        }
        let mut expression = self.expression_above(Some(Precedence::Not))?;
        for _ in 0..2 - count % 2 {
            expression = Expression { span, node: Node::Not(Box::new(expression)) };
        }
        Ok(expression)
    }

    fn term(&mut self) -> Result<Expression, StatementFault> {
        let span = self.span();
        let node = match self.peek() {
            StatementTokenKind::Number => Node::Number { digits: self.advance(), negative: false },
            StatementTokenKind::Text => Node::Text(unquoted(self.advance_text())),
            StatementTokenKind::Parameter => {
                self.advance();
                self.parameters += 1;
                Node::Parameter(self.parameters - 1)
            }
            StatementTokenKind::OpenBracket => {
                self.advance();
                Node::List(self.elements(StatementTokenKind::CloseBracket, "RIGHT_BRACKET")?)
            }
            StatementTokenKind::OpenBag => {
                self.advance();
                let token = "RIGHT_DOUBLE_ANGLE_BRACKET";
                Node::Bag(self.elements(StatementTokenKind::CloseBag, token)?)
            }
            StatementTokenKind::OpenBrace => self.map()?,
            StatementTokenKind::OpenParenthesis => {
                self.advance();
                self.enter()?;
                let inner = self.expression()?;
                self.depth -= 1;
                self.expect(StatementTokenKind::CloseParenthesis, "RIGHT_PAREN")?;
                return Ok(inner);
            }
            StatementTokenKind::Keyword => self.keyword_term()?,
            StatementTokenKind::Name
                if self.peek_second() == StatementTokenKind::OpenParenthesis =>
            {
                self.call()?
            }
            StatementTokenKind::Name | StatementTokenKind::QuotedName => self.path_term()?,
            _ => return Err(self.unexpected()),
        };
        Ok(Expression { span, node })
    }

    fn keyword_term(&mut self) -> Result<Node, StatementFault> {
        let word = self.text_of(self.span());
        let node = match word {
            _ if word.eq_ignore_ascii_case("true") => Node::Bool(true),
            _ if word.eq_ignore_ascii_case("false") => Node::Bool(false),
            _ if word.eq_ignore_ascii_case("null") => Node::Null,
            _ if is_function(word) && self.peek_second() == StatementTokenKind::OpenParenthesis => {
                return self.call();
            }
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(node)
    }

    fn path_term(&mut self) -> Result<Node, StatementFault> {
        let root = self.accept_name().ok_or(StatementFault::UnexpectedTerm)?;
        self.path_below(root).map(Node::Path)
    }

    /// A function and its arguments; `COUNT(*)` has none.
    fn call(&mut self) -> Result<Node, StatementFault> {
        self.position += 2;
        if self.peek() == StatementTokenKind::Star
            && self.peek_second() == StatementTokenKind::CloseParenthesis
        {
            self.position += 2;
            return Ok(Node::Call { arguments: Vec::new() });
        }
        // EXISTS takes a whole statement; it is read only where one is allowed.
        if self.at_word("SELECT") {
            return Err(StatementFault::UnexpectedKeyword);
        }
        let arguments = self.elements(StatementTokenKind::CloseParenthesis, "RIGHT_PAREN")?;
        Ok(Node::Call { arguments })
    }

    fn map(&mut self) -> Result<Node, StatementFault> {
        self.advance();
        self.enter()?;
        let mut fields = Vec::new();
        if self.peek() != StatementTokenKind::CloseBrace {
            fields.push(self.field()?);
            while self.accept(StatementTokenKind::Comma) {
                fields.push(self.field()?);
            }
        }
        self.expect(StatementTokenKind::CloseBrace, "RIGHT_CURLY")?;
        self.depth -= 1;
        Ok(Node::Map(fields))
    }

    fn field(&mut self) -> Result<(String, Expression), StatementFault> {
        if self.peek() != StatementTokenKind::Text {
            return Err(self.unexpected());
        }
        let name = unquoted(self.advance_text());
        self.expect(StatementTokenKind::Colon, "COLON")?;
        Ok((name, self.expression()?))
    }

    /// Expressions separated by commas, up to and including a closing token.
    fn elements(
        &mut self,
        close: StatementTokenKind,
        token: &'static str,
    ) -> Result<Vec<Expression>, StatementFault> {
        self.enter()?;
        let mut elements = Vec::new();
        if self.peek() != close {
            elements.push(self.expression()?);
            while self.accept(StatementTokenKind::Comma) {
                elements.push(self.expression()?);
            }
        }
        self.expect(close, token)?;
        self.depth -= 1;
        Ok(elements)
    }

    fn enter(&mut self) -> Result<(), StatementFault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(StatementFault::NestedTooDeeply) } else { Ok(()) }
    }

    /// Operators nest as well, so too many of them end the parsing.
    fn count_operator(&mut self) -> Result<(), StatementFault> {
        self.operators += 1;
        match self.operators > OPERATORS_MAX {
            true => Err(StatementFault::TooManyOperators { count: self.operators }),
            false => Ok(()),
        }
    }

    // ---- type names -----------------------------------------------------------------------------

    fn type_test(&mut self) -> Result<TypeTest, StatementFault> {
        use zenobe_value::AttributeType as Type;
        const NUMBERS: [&str; 15] = [
            "SMALLINT", "INT", "INT2", "INT4", "INT8", "INTEGER", "INTEGER2", "INTEGER4",
            "INTEGER8", "BIGINT", "FLOAT", "REAL", "DECIMAL", "DEC", "NUMERIC",
        ];
        const TEXTS: [&str; 6] = ["CHAR", "CHARACTER", "VARCHAR", "STRING", "SYMBOL", "CLOB"];
        const FOREIGN: [&str; 4] = ["TIMESTAMP", "DATE", "TIME", "SEXP"];
        if !matches!(self.peek(), StatementTokenKind::Keyword | StatementTokenKind::Name) {
            return Err(StatementFault::ExpectedTypeName);
        }
        let span = self.advance();
        let name = self.text_of(span).to_ascii_uppercase();
        let test = match name.as_str() {
            "MISSING" => TypeTest::Missing,
            "NULL" => TypeTest::OneOf(&[Type::Null]),
            "BOOL" | "BOOLEAN" => TypeTest::OneOf(&[Type::Bool]),
            "BLOB" => TypeTest::OneOf(&[Type::B]),
            "STRUCT" | "TUPLE" => TypeTest::OneOf(&[Type::M]),
            "LIST" => TypeTest::OneOf(&[Type::L]),
            "BAG" => TypeTest::OneOf(&[Type::Ss, Type::Ns, Type::Bs]),
            "ANY" => TypeTest::Present,
            "DOUBLE" if self.accept_word("PRECISION") => TypeTest::OneOf(&[Type::N]),
            name if NUMBERS.contains(&name) => TypeTest::OneOf(&[Type::N]),
            name if TEXTS.contains(&name) => TypeTest::OneOf(&[Type::S]),
            name if FOREIGN.contains(&name) => TypeTest::OneOf(&[]),
            _ => return Err(StatementFault::ExpectedTypeName),
        };
        if name == "CHARACTER" {
            self.accept_word("VARYING");
        }
        self.type_arguments()?;
        Ok(test)
    }

    /// SQL's lengths and precisions, as in `DECIMAL(10, 2)`: DynamoDB has no use for them.
    fn type_arguments(&mut self) -> Result<(), StatementFault> {
        if !self.accept(StatementTokenKind::OpenParenthesis) {
            return Ok(());
        }
        self.expect(StatementTokenKind::Number, "LITERAL")?;
        while self.accept(StatementTokenKind::Comma) {
            self.expect(StatementTokenKind::Number, "LITERAL")?;
        }
        self.expect(StatementTokenKind::CloseParenthesis, "RIGHT_PAREN").map(drop)
    }
}

/// Two operands and the operator between them.
fn joined(left: Expression, infix: Infix, right: Expression) -> Node {
    let boxed = |left, right| (Box::new(left), Box::new(right));
    match infix {
        Infix::And => match left.node {
            Node::And(mut operands) => {
                operands.push(right);
                Node::And(operands)
            }
            _ => Node::And(vec![left, right]),
        },
        Infix::Or => match left.node {
            Node::Or(mut operands) => {
                operands.push(right);
                Node::Or(operands)
            }
            _ => Node::Or(vec![left, right]),
        },
        Infix::Compare(comparator) => {
            let (left, right) = boxed(left, right);
            Node::Compare { left, comparator, right }
        }
        Infix::Plus | Infix::Minus => {
            let (left, right) = boxed(left, right);
            Node::Arithmetic { subtract: infix == Infix::Minus, left, right }
        }
        Infix::Like => Node::Unsupported("Like"),
        Infix::Other(operation) => Node::Unsupported(operation),
        Infix::Is | Infix::In | Infix::NotIn | Infix::Between | Infix::NotBetween => {
            unreachable!("{infix:?} has a grammar of its own")
        }
    }
}
