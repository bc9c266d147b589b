//! The parser of expressions: recursive descent, with bounded depth.

use super::{Expression, Operator};

/// How deeply parentheses and calls may nest.
const DEPTH_MAX: usize = 24;

/// The operators by precedence, the lowest first. Longer operators come before their prefixes.
const LEVELS: [&[(&str, Operator)]; 6] = [
    &[("||", Operator::Or), ("OR ", Operator::Or)],
    &[("&&", Operator::And), ("AND ", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide)],
    &[("^", Operator::Power)],
];

/// The expression of a text, or what is wrong with it.
pub fn parse(text: &str) -> Result<Expression, String> {
    let mut parser = Parser { rest: text.trim_start(), depth: 0 };
    let expression = parser.level(0)?;
    match parser.rest.is_empty() {
        true => Ok(expression),
        false => Err(format!("Unexpected '{}'", first(parser.rest))),
    }
}

struct Parser<'t> {
    rest: &'t str,
    depth: usize,
}

impl Parser<'_> {
    fn level(&mut self, level: usize) -> Result<Expression, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        while let Some((_, operator)) = operators.iter().find(|(name, _)| self.accept(name)) {
            let right = self.level(level + 1)?;
            left = Expression::Binary(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("The expression is nested too deeply".to_owned());
        }
        let expression = match self.accept("-") {
            true => Expression::Negate(Box::new(self.unary()?)),
            false => self.primary()?,
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn primary(&mut self) -> Result<Expression, String> {
        if self.accept("(") {
            let inner = self.level(0)?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.accept("[") {
            return self.elements("]").map(Expression::Array);
        }
        match self.rest.chars().next() {
            Some('"') => self.text('"'),
            Some('\'') => self.text('\''),
            Some(digit) if digit.is_ascii_digit() || digit == '.' => self.number(),
            Some(letter) if letter.is_ascii_alphabetic() => {
                let name = self.take_while(|it| it.is_ascii_alphanumeric() || it == '_').to_owned();
                match self.accept("(") {
                    true => Ok(Expression::Call(name, self.elements(")")?)),
                    false => Ok(Expression::Name(name)),
                }
            }
            Some(other) => Err(format!("Unexpected '{other}'")),
            None => Err("Unexpected end of expression".to_owned()),
        }
    }

    fn elements(&mut self, end: &str) -> Result<Vec<Expression>, String> {
        let mut elements = Vec::new();
        if self.accept(end) {
            return Ok(elements);
        }
        loop {
            elements.push(self.level(0)?);
            if self.accept(end) {
                return Ok(elements);
            }
            self.expect(",")?;
        }
    }

    fn number(&mut self) -> Result<Expression, String> {
        let text = self.take_while(|it| it.is_ascii_digit() || it == '.').to_owned();
        text.parse().map(Expression::Number).map_err(|_| format!("'{text}' is not a number"))
    }

    fn text(&mut self, quote: char) -> Result<Expression, String> {
        let inside = &self.rest[1..];
        let (text, rest) = inside.split_once(quote).ok_or("A text has no end")?;
        self.rest = rest.trim_start();
        Ok(Expression::Text(text.to_owned()))
    }

    fn take_while(&mut self, passes: impl Fn(char) -> bool) -> &str {
        let end = self.rest.find(|it| !passes(it)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        taken
    }

    fn accept(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        match self.accept(token) {
            true => Ok(()),
            false => Err(format!("Expected '{token}' before '{}'", first(self.rest))),
        }
    }
}

fn first(rest: &str) -> String {
    rest.chars().next().map_or("the end".to_owned(), String::from)
}
