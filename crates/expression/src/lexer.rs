//! Text to tokens. Every character belongs to a token or is white space, so that lexing never fails: a
//! character without a meaning becomes a token that no grammar accepts.

use std::str::CharIndices;

use crate::condition::Comparator;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A bare name, a keyword or a function name.
    Word,
    Digits,
    /// `#name`
    Name,
    /// `:value`
    Value,
    Comparator(Comparator),
    OpenParenthesis,
    CloseParenthesis,
    OpenBracket,
    CloseBracket,
    Dot,
    Comma,
    Plus,
    Minus,
    Unknown,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub start: usize,
    pub end: usize,
}

/// The tokens of a text, closed by one of kind `End`.
pub(crate) fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(text.len() / 3 + 1);
    let mut characters = text.char_indices();
    while let Some((start, character)) = characters.next() {
        if matches!(character, ' ' | '\t' | '\r' | '\n') {
            continue;
        }
        let kind = token_kind(character, &mut characters);
        tokens.push(Token { kind, start, end: characters.offset() });
    }
    tokens.push(Token { kind: TokenKind::End, start: text.len(), end: text.len() });
    tokens
}

/// The kind of the token that starts with a character; consumes the rest of the token.
fn token_kind(first: char, rest: &mut CharIndices<'_>) -> TokenKind {
    match first {
        'A'..='Z' | 'a'..='z' => {
            skip_while(rest, is_word_part);
            TokenKind::Word
        }
        '0'..='9' => {
            skip_while(rest, |character| character.is_ascii_digit());
            TokenKind::Digits
        }
        '#' if skip_while(rest, is_word_part) => TokenKind::Name,
        ':' if skip_while(rest, is_word_part) => TokenKind::Value,
        '=' => TokenKind::Comparator(Comparator::Equal),
        '<' if skip(rest, '=') => TokenKind::Comparator(Comparator::LessOrEqual),
        '<' if skip(rest, '>') => TokenKind::Comparator(Comparator::NotEqual),
        '<' => TokenKind::Comparator(Comparator::Less),
        '>' if skip(rest, '=') => TokenKind::Comparator(Comparator::GreaterOrEqual),
        '>' => TokenKind::Comparator(Comparator::Greater),
        '(' => TokenKind::OpenParenthesis,
        ')' => TokenKind::CloseParenthesis,
        '[' => TokenKind::OpenBracket,
        ']' => TokenKind::CloseBracket,
        '.' => TokenKind::Dot,
        ',' => TokenKind::Comma,
        '+' => TokenKind::Plus,
        '-' => TokenKind::Minus,
        _ => TokenKind::Unknown,
    }
}

/// What may follow the first character of a bare name or the prefix of a placeholder.
pub(crate) fn is_word_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Consumes matching characters; whether there was any.
fn skip_while(rest: &mut CharIndices<'_>, matches: impl Fn(char) -> bool) -> bool {
    let before = rest.offset();
    while rest.as_str().starts_with(&matches) {
        rest.next();
    }
    rest.offset() > before
}

fn skip(rest: &mut CharIndices<'_>, expected: char) -> bool {
    let found = rest.as_str().starts_with(expected);
    if found {
        rest.next();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let tokens = tokenize(text);
        let texts: Vec<&str> = tokens.iter().map(|token| &text[token.start..token.end]).collect();
        let (end, texts) = texts.split_last().expect("the end is a token");
        assert_eq!(*end, "");
        assert_eq!(texts, expected);
    }

    #[test]
    fn splits_into_tokens() {
        check("", &[]);
        check(" \t\r\n", &[]);
        check("a-b", &["a", "-", "b"]);
        check("SET _123=:v", &["SET", "_", "123", "=", ":v"]);
        check("a<=b<>c<d>=e>f", &["a", "<=", "b", "<>", "c", "<", "d", ">=", "e", ">", "f"]);
        check("#0_a.b[12]", &["#0_a", ".", "b", "[", "12", "]"]);
        check("# :", &["#", ":"]);
        check("naïve!!", &["na", "ï", "ve", "!", "!"]);
        check("size(a),(b)+1c", &["size", "(", "a", ")", ",", "(", "b", ")", "+", "1", "c"]);
    }
}
