//! A pull reader over JSON text: the caller asks for the value it expects next.
//!
//! It is hand-written because DynamoDB's type errors distinguish `23` from `23.5`, and because lone
//! surrogates, invalid UTF-8 and unbounded nesting must be rejected while reading.

use std::borrow::Cow;

use super::plain::plain_length;

/// Deeper structures are rejected. Attribute values nest to 32 levels of two JSON levels each, so
/// this leaves ample margin to read a value that is too deep and report it.
const DEPTH_MAX: usize = 1_000;

/// The text is not JSON. Clients never see what exactly is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SyntaxError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    True,
    False,
    /// A number without fraction and exponent.
    Integer,
    Decimal,
    String,
    Array,
    Object,
}

pub(crate) struct JsonReader<'a> {
    text: &'a str,
    position: usize,
    depth: usize,
    /// How many entries of maps with free keys were kept.
    entries_kept: usize,
    /// Whether there were more of them than any legal request has, so that some were dropped.
    has_lost_entries: bool,
}

/// The most map entries that a request may have, over all its maps. An attribute takes 13 bytes, as in
/// `"a":{"L":[]},`. Anything smaller is not an attribute, and would take many times its size when
/// kept.
const REQUEST_ENTRIES_MAX: usize = (16 << 20) / 13;

pub(crate) fn is_valid(bytes: &[u8]) -> bool {
    let validate = || -> Result<(), SyntaxError> {
        let mut reader = JsonReader::new(bytes)?;
        reader.skip()?;
        reader.end()
    };
    validate().is_ok()
}

impl<'a> JsonReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<JsonReader<'a>, SyntaxError> {
        let text = std::str::from_utf8(bytes).map_err(|_| SyntaxError)?;
        Ok(JsonReader { text, position: 0, depth: 0, entries_kept: 0, has_lost_entries: false })
    }

    /// Announces that an entry of a map is about to be kept, besides `entries_before` of the same
    /// map. Returns false if it cannot be kept; the request must then be rejected.
    pub(crate) fn keeps_entry(&mut self, entries_before: usize, entries_max: usize) -> bool {
        self.entries_kept += 1;
        let keeps = entries_before < entries_max && self.entries_kept <= REQUEST_ENTRIES_MAX;
        self.has_lost_entries |= !keeps;
        keeps
    }

    pub(crate) fn has_lost_entries(&self) -> bool {
        self.has_lost_entries
    }

    /// The kind of the next value, without consuming it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<Kind, SyntaxError> {
        match self.next_significant().ok_or(SyntaxError)? {
            b'n' => Ok(Kind::Null),
            b't' => Ok(Kind::True),
            b'f' => Ok(Kind::False),
            b'"' => Ok(Kind::String),
            b'[' => Ok(Kind::Array),
            b'{' => Ok(Kind::Object),
            b'-' | b'0'..=b'9' => self.number_kind(),
            _ => Err(SyntaxError),
        }
    }

    fn number_kind(&self) -> Result<Kind, SyntaxError> {
        let text = &self.text[self.position..self.number_end()?];
        let is_decimal = text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        Ok(if is_decimal { Kind::Decimal } else { Kind::Integer })
    }

    /// How many bytes of the text have been read.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn literal(&mut self, word: &str) -> Result<(), SyntaxError> {
        self.next_significant();
        let rest = self.text.as_bytes().get(self.position..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(SyntaxError);
        }
        self.position += word.len();
        Ok(())
    }

    /// A number's text, as written.
    pub(crate) fn number(&mut self) -> Result<&'a str, SyntaxError> {
        self.next_significant();
        let end = self.number_end()?;
        let text = &self.text[self.position..end];
        self.position = end;
        Ok(text)
    }

    /// A string, borrowed from the request unless it contains escapes.
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>, SyntaxError> {
        self.expect(b'"')?;
        let start = self.position;
        let end = self.plain_run_end()?;
        let plain = &self.text[start..end];
        if self.text.as_bytes()[end] == b'"' {
            self.position = end + 1;
            return Ok(Cow::Borrowed(plain));
        }
        self.position = end;
        self.string_with_escapes(plain).map(Cow::Owned)
    }

    /// Starts an object. Read its members with [`JsonReader::next_member`].
    pub(crate) fn begin_object(&mut self) -> Result<(), SyntaxError> {
        self.expect(b'{')?;
        self.descend()
    }

    /// The next member's name, or `None` after the last one. `first` must be true on the first call only.
    pub(crate) fn next_member(&mut self, first: bool) -> Result<Option<Cow<'a, str>>, SyntaxError> {
        if self.ends_here_or_separates(b'}', first)? {
            return Ok(None);
        }
        let name = self.string()?;
        self.expect(b':')?;
        Ok(Some(name))
    }

    /// Starts an array. Call [`JsonReader::next_element`] before each element.
    pub(crate) fn begin_array(&mut self) -> Result<(), SyntaxError> {
        self.expect(b'[')?;
        self.descend()
    }

    /// Whether another element follows. `first` must be true on the first call only.
    pub(crate) fn next_element(&mut self, first: bool) -> Result<bool, SyntaxError> {
        Ok(!self.ends_here_or_separates(b']', first)?)
    }

    /// Skips one value of any kind. Iterative, so deep nesting can't exhaust the stack.
    pub(crate) fn skip(&mut self) -> Result<(), SyntaxError> {
        let mut open: Vec<Kind> = Vec::new();
        loop {
            let kind = self.peek()?;
            match kind {
                Kind::Null => self.literal("null")?,
                Kind::True => self.literal("true")?,
                Kind::False => self.literal("false")?,
                Kind::Integer | Kind::Decimal => self.number().map(drop)?,
                Kind::String => self.string().map(drop)?,
                Kind::Array => self.begin_array()?,
                Kind::Object => self.begin_object()?,
            }
            let mut first = matches!(kind, Kind::Array | Kind::Object);
            if first {
                open.push(kind);
            }
            loop {
                let more = match open.last() {
                    None => return Ok(()),
                    Some(Kind::Array) => self.next_element(first)?,
                    Some(_) => self.next_member(first)?.is_some(),
                };
                if more {
                    break;
                }
                open.pop();
                first = false;
            }
        }
    }

    /// Checks that nothing but white space follows.
    pub(crate) fn end(&mut self) -> Result<(), SyntaxError> {
        match self.next_significant() {
            None => Ok(()),
            Some(_) => Err(SyntaxError),
        }
    }

    #[inline]
    fn next_significant(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.position) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.position += 1;
        }
        None
    }

    fn expect(&mut self, expected: u8) -> Result<(), SyntaxError> {
        if self.next_significant() != Some(expected) {
            return Err(SyntaxError);
        }
        self.position += 1;
        Ok(())
    }

    fn descend(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(SyntaxError) } else { Ok(()) }
    }

    fn ends_here_or_separates(&mut self, closing: u8, first: bool) -> Result<bool, SyntaxError> {
        let byte = self.next_significant().ok_or(SyntaxError)?;
        if byte == closing {
            self.position += 1;
            self.depth -= 1;
            return Ok(true);
        }
        if !first {
            self.expect(b',')?;
        }
        Ok(false)
    }

    /// The position after the number that starts here: `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`
    fn number_end(&self) -> Result<usize, SyntaxError> {
        let bytes = self.text.as_bytes();
        let digits_end = |from: usize| {
            let count = bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if count == 0 { Err(SyntaxError) } else { Ok(from + count) }
        };
        let mut at = self.position;
        if bytes.get(at) == Some(&b'-') {
            at += 1;
        }
        at = match bytes.get(at) {
            Some(b'0') => at + 1,
            Some(_) => digits_end(at)?,
            None => return Err(SyntaxError),
        };
        if bytes.get(at) == Some(&b'.') {
            at = digits_end(at + 1)?;
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            at += 1;
            if matches!(bytes.get(at), Some(b'+' | b'-')) {
                at += 1;
            }
            at = digits_end(at)?;
        }
        // `01` and `1x` end in the middle of a word.
        match bytes.get(at) {
            Some(byte) if byte.is_ascii_alphanumeric() || *byte == b'.' => Err(SyntaxError),
            _ => Ok(at),
        }
    }

    /// The position of the next quote or backslash. Control characters are not allowed before it.
    fn plain_run_end(&self) -> Result<usize, SyntaxError> {
        let rest = &self.text.as_bytes()[self.position..];
        let length = plain_length(rest);
        match rest.get(length) {
            Some(b'"' | b'\\') => Ok(self.position + length),
            _ => Err(SyntaxError),
        }
    }

    fn string_with_escapes(&mut self, plain: &str) -> Result<String, SyntaxError> {
        let mut text = plain.to_owned();
        loop {
            let byte = *self.text.as_bytes().get(self.position).ok_or(SyntaxError)?;
            self.position += 1;
            if byte == b'"' {
                return Ok(text);
            }
            debug_assert_eq!(byte, b'\\');
            text.push(self.escape()?);
            let end = self.plain_run_end()?;
            text.push_str(&self.text[self.position..end]);
            self.position = end;
        }
    }

    fn escape(&mut self) -> Result<char, SyntaxError> {
        let byte = *self.text.as_bytes().get(self.position).ok_or(SyntaxError)?;
        self.position += 1;
        match byte {
            b'"' => Ok('"'),
            b'\\' => Ok('\\'),
            b'/' => Ok('/'),
            b'b' => Ok('\u{8}'),
            b'f' => Ok('\u{c}'),
            b'n' => Ok('\n'),
            b'r' => Ok('\r'),
            b't' => Ok('\t'),
            b'u' => self.unicode_escape(),
            _ => Err(SyntaxError),
        }
    }

    fn unicode_escape(&mut self) -> Result<char, SyntaxError> {
        let first = self.hexadecimal_unit()?;
        if !(0xd800..=0xdfff).contains(&first) {
            return char::from_u32(first).ok_or(SyntaxError);
        }
        if first >= 0xdc00 || !self.text[self.position..].starts_with("\\u") {
            return Err(SyntaxError);
        }
        self.position += 2;
        let second = self.hexadecimal_unit()?;
        if !(0xdc00..=0xdfff).contains(&second) {
            return Err(SyntaxError);
        }
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or(SyntaxError)
    }

    fn hexadecimal_unit(&mut self) -> Result<u32, SyntaxError> {
        let digits = self
            .text
            .as_bytes()
            .get(self.position..self.position + 4)
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .ok_or(SyntaxError)?;
        self.position += 4;
        let accumulate = |value: u32, digit: &u8| {
            value * 16 + char::from(*digit).to_digit(16).unwrap_or_default()
        };
        Ok(digits.iter().fold(0, accumulate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_json_is_accepted() {
        let valid = [
            "{}",
            " [ ] ",
            "0",
            "-0.5e+7",
            "\"\\u00e9\\ud83d\\ude00\"",
            "{\"a\":[1,{\"b\":null}],\"c\":true}",
            "\"\u{7f}é\"",
            "[[],[[]]]",
        ];
        for text in valid {
            assert!(is_valid(text.as_bytes()), "{text}");
        }
        let invalid = [
            "",
            "{",
            "{]",
            "[1,]",
            "{\"a\":1,}",
            "{a:1}",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "nul",
            "truex",
            "\"\\ud83d\"",
            "\"\\udc00\\ud800\"",
            "\"\\x\"",
            "\"a\nb\"",
            "{} {}",
            "'a'",
            "[1 2]",
            "{\"a\" 1}",
            "-",
            "\"abc",
            "\"\\u12\"",
            "\"\\u+123\"",
            "nan",
            "[,1]",
        ];
        for text in invalid {
            assert!(!is_valid(text.as_bytes()), "{text}");
        }
        assert!(!is_valid(b"\"\xff\""));
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(is_valid(nested(DEPTH_MAX).as_bytes()));
        assert!(!is_valid(nested(DEPTH_MAX + 1).as_bytes()));
        assert!(!is_valid(nested(1_000_000).as_bytes()));
    }

    #[test]
    fn strings_borrow_unless_escaped() {
        let read = |text: &'static str| JsonReader::new(text.as_bytes()).unwrap().string().unwrap();
        assert!(matches!(read("\"plain é\""), Cow::Borrowed("plain é")));
        assert_eq!(read(r#""a\n\"\\\/\u0041\ud83d\ude00z""#), "a\n\"\\/A😀z");
    }

    #[test]
    fn integers_are_distinguished_from_decimals() {
        let kind = |text: &'static str| JsonReader::new(text.as_bytes()).unwrap().peek().unwrap();
        assert_eq!(kind("23"), Kind::Integer);
        assert_eq!(kind(" -23.5"), Kind::Decimal);
        assert_eq!(kind("1e3"), Kind::Decimal);
    }
}
