//! Splits text into tokens. Lexing never fails, because every character belongs to a token or is
//! white space: a character without a meaning becomes a token that no grammar accepts.

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

/// The tokens of a text, followed by one of kind `End`.
pub(crate) fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(text.len() / 3 + 1);
    let mut start = 0;
    while let Some((&first, rest)) = text.as_bytes()[start..].split_first() {
        if matches!(first, b' ' | b'\t' | b'\r' | b'\n') {
            start += 1;
            continue;
        }
        let (kind, length) = match token(first, rest) {
            Some((kind, rest_length)) => (kind, 1 + rest_length),
            None => (TokenKind::Unknown, text[start..].chars().next().map_or(1, char::len_utf8)),
        };
        tokens.push(Token { kind, start, end: start + length });
        start += length;
    }
    tokens.push(Token { kind: TokenKind::End, start: text.len(), end: text.len() });
    tokens
}

/// The kind of the token that starts with `first`, and how many of the following bytes belong to
/// it. `None` if no token starts this way.
fn token(first: u8, rest: &[u8]) -> Option<(TokenKind, usize)> {
    let after = rest.first();
    let kind = match first {
        b'A'..=b'Z' | b'a'..=b'z' => return Some((TokenKind::Word, word_length(rest))),
        b'0'..=b'9' => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
            return Some((TokenKind::Digits, digits.count()));
        }
        b'#' | b':' => {
            let kind = if first == b'#' { TokenKind::Name } else { TokenKind::Value };
            return Some((kind, word_length(rest))).filter(|(_, length)| *length > 0);
        }
        b'<' if after == Some(&b'=') => return comparator(Comparator::LessOrEqual, 1),
        b'<' if after == Some(&b'>') => return comparator(Comparator::NotEqual, 1),
        b'>' if after == Some(&b'=') => return comparator(Comparator::GreaterOrEqual, 1),
        b'<' => return comparator(Comparator::Less, 0),
        b'>' => return comparator(Comparator::Greater, 0),
        b'=' => return comparator(Comparator::Equal, 0),
        b'(' => TokenKind::OpenParenthesis,
        b')' => TokenKind::CloseParenthesis,
        b'[' => TokenKind::OpenBracket,
        b']' => TokenKind::CloseBracket,
        b'.' => TokenKind::Dot,
        b',' => TokenKind::Comma,
        b'+' => TokenKind::Plus,
        b'-' => TokenKind::Minus,
        _ => return None,
    };
    Some((kind, 0))
}

fn comparator(comparator: Comparator, rest_length: usize) -> Option<(TokenKind, usize)> {
    Some((TokenKind::Comparator(comparator), rest_length))
}

fn word_length(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_word_part(**byte)).count()
}

/// What may follow the first character of a bare name or the prefix of a placeholder.
pub(crate) fn is_word_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
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
