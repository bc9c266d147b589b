//! Splits text into tokens. It drops white space and comments, and stops at a character without a
//! meaning.

use super::fault::StatementFault;
use super::keywords::is_keyword;
use crate::condition::Comparator;
use crate::syntax::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatementTokenKind {
    /// A bare name.
    Name,
    Keyword,
    /// `"name"`, with its quotes.
    QuotedName,
    /// `'text'`, with its quotes.
    Text,
    Number,
    /// `?`
    Parameter,
    Comparator(Comparator),
    Plus,
    Minus,
    Star,
    /// An operator of SQL that DynamoDB lacks.
    OtherOperator,
    OpenParenthesis,
    CloseParenthesis,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    OpenBag,
    CloseBag,
    Dot,
    Comma,
    Colon,
    Semicolon,
    End,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StatementToken {
    pub kind: StatementTokenKind,
    pub span: Span,
}

/// The tokens of a text, followed by one of kind `End`.
pub(super) fn tokenize(text: &str) -> Result<Vec<StatementToken>, StatementFault> {
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    let mut start = 0;
    loop {
        start += blank_length(&text[start..])?;
        if start == text.len() {
            tokens.push(StatementToken {
                kind: StatementTokenKind::End,
                span: Span::new(start, start),
            });
            return Ok(tokens);
        }
        let (kind, length) = token(&text[start..])?;
        tokens.push(StatementToken { kind, span: Span::new(start, start + length) });
        start += length;
    }
}

/// The length of the white space and comments at the start of the text.
fn blank_length(text: &str) -> Result<usize, StatementFault> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        match &bytes[at..] {
            [b' ' | b'\t' | b'\r' | b'\n' | 0x0B | 0x0C, ..] => at += 1,
            [b'-', b'-', rest @ ..] => {
                let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
                at += 2 + rest.iter().position(is_end).unwrap_or(rest.len());
            }
            [b'/', b'*', rest @ ..] => {
                let end = rest.windows(2).position(|pair| pair == b"*/");
                at += 4 + end.ok_or(StatementFault::Unreadable)?;
            }
            _ => return Ok(at),
        }
    }
}

/// The first token of a text, and its length in bytes.
fn token(text: &str) -> Result<(StatementTokenKind, usize), StatementFault> {
    use StatementTokenKind as Kind;
    let bytes = text.as_bytes();
    let (kind, length) = match bytes {
        [b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$', ..] => {
            let length = bytes.iter().take_while(|byte| is_name_part(**byte)).count();
            let kind = if is_keyword(&text[..length]) { Kind::Keyword } else { Kind::Name };
            (kind, length)
        }
        [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => (Kind::Number, number_length(bytes)?),
        [b'"', ..] => (Kind::QuotedName, quoted_length(bytes, b'"')?),
        [b'\'', ..] => (Kind::Text, quoted_length(bytes, b'\'')?),
        [b'<', b'<', ..] => (Kind::OpenBag, 2),
        [b'>', b'>', ..] => (Kind::CloseBag, 2),
        [b'<', b'=', ..] => (Kind::Comparator(Comparator::LessOrEqual), 2),
        [b'>', b'=', ..] => (Kind::Comparator(Comparator::GreaterOrEqual), 2),
        [b'<', b'>', ..] | [b'!', b'=', ..] => (Kind::Comparator(Comparator::NotEqual), 2),
        [b'<', ..] => (Kind::Comparator(Comparator::Less), 1),
        [b'>', ..] => (Kind::Comparator(Comparator::Greater), 1),
        [b'=', ..] => (Kind::Comparator(Comparator::Equal), 1),
        [b'|', b'|', ..] => (Kind::OtherOperator, 2),
        [b'/' | b'%', ..] => (Kind::OtherOperator, 1),
        [b'+', ..] => (Kind::Plus, 1),
        [b'-', ..] => (Kind::Minus, 1),
        [b'*', ..] => (Kind::Star, 1),
        [b'?', ..] => (Kind::Parameter, 1),
        [b'(', ..] => (Kind::OpenParenthesis, 1),
        [b')', ..] => (Kind::CloseParenthesis, 1),
        [b'[', ..] => (Kind::OpenBracket, 1),
        [b']', ..] => (Kind::CloseBracket, 1),
        [b'{', ..] => (Kind::OpenBrace, 1),
        [b'}', ..] => (Kind::CloseBrace, 1),
        [b'.', ..] => (Kind::Dot, 1),
        [b',', ..] => (Kind::Comma, 1),
        [b':', ..] => (Kind::Colon, 1),
        [b';', ..] => (Kind::Semicolon, 1),
        _ => return Err(StatementFault::Unreadable),
    };
    Ok((kind, length))
}

fn is_name_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

/// The length of a quoted text, quotes included. A doubled quote stands for one.
fn quoted_length(bytes: &[u8], quote: u8) -> Result<usize, StatementFault> {
    let mut at = 1;
    while let Some(length) = memchr::memchr(quote, &bytes[at..]) {
        at += length + 1;
        if bytes.get(at) != Some(&quote) {
            return Ok(at);
        }
        at += 1;
    }
    Err(StatementFault::Unreadable)
}

/// The length of a number. Its exponent and its scale must fit in 32 bits. Whether DynamoDB can
/// store the number is checked later, when its use is known.
fn number_length(bytes: &[u8]) -> Result<usize, StatementFault> {
    let digits =
        |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = digits(0);
    let mut fraction = 0;
    if bytes.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        at += 1 + fraction;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent_digits = digits(at + 1 + sign);
        let exponent = &bytes[at + 1..at + 1 + sign + exponent_digits];
        let exponent = std::str::from_utf8(exponent).ok().and_then(|text| text.parse::<i32>().ok());
        let exponent = exponent.ok_or(StatementFault::Unreadable)?;
        let scale = fraction as i64 - i64::from(exponent);
        if i32::try_from(scale).is_err() {
            return Err(StatementFault::Unreadable);
        }
        at += 1 + sign + exponent_digits;
    }
    match bytes.get(at) {
        Some(byte) if is_name_part(*byte) => Err(StatementFault::Unreadable),
        _ => Ok(at),
    }
}

/// The text between the quotes.
pub(super) fn unquoted(quoted: &str) -> String {
    let inner = &quoted[1..quoted.len() - 1];
    match quoted.as_bytes()[0] {
        b'"' if inner.contains('"') => inner.replace("\"\"", "\""),
        b'\'' if inner.contains('\'') => inner.replace("''", "'"),
        _ => inner.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let tokens = tokenize(text).unwrap();
        let texts: Vec<&str> = tokens.iter().map(|token| token.span.of(text)).collect();
        let (end, texts) = texts.split_last().expect("the end is a token");
        assert_eq!((*end, texts), ("", expected));
    }

    #[test]
    fn splits_into_tokens() {
        check("", &[]);
        check(" \t\r\n-- all of it", &[]);
        check("a.b[0].\"c \"\"d\"", &["a", ".", "b", "[", "0", "]", ".", "\"c \"\"d\""]);
        check("n-1", &["n", "-", "1"]);
        check("n--1\n+2", &["n", "+", "2"]);
        check("a/* b */c /**/ d", &["a", "c", "d"]);
        check("'it''s' .5 1.5E-3 5.", &["'it''s'", ".5", "1.5E-3", "5."]);
        check("<<1>> <> != <= >= < > =", &["<<", "1", ">>", "<>", "!=", "<=", ">=", "<", ">", "="]);
        check("f(?, *);", &["f", "(", "?", ",", "*", ")", ";"]);
    }

    #[test]
    fn unreadable_text_is_rejected() {
        for text in [
            "'open",
            "\"open",
            "'it''",
            "/* open",
            "/*/",
            "# note",
            "é",
            "`x`",
            "1e",
            "1e+",
            "1x",
            "1e2147483648",
            "1.5e-2147483647",
            "1e99999999999",
            "a ! b",
            "\u{0}",
        ] {
            assert!(matches!(tokenize(text), Err(StatementFault::Unreadable)), "{text}");
        }
        assert!(tokenize("1e2147483647").is_ok());
    }

    #[test]
    fn quotes_are_undone() {
        assert_eq!(unquoted("'it''s \"x\"\"'"), "it's \"x\"\"");
        assert_eq!(unquoted("\"a\"\"b''\""), "a\"b''");
        assert_eq!(unquoted("''"), "");
    }
}
