//! Ion's text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zenobe_value::{AttributeType, AttributeValue, Attributes};

use super::records::{Values, set_type};
use super::{Content, DEPTH_MAX, Parsed, Stop};
use crate::read_error::ContentError;

/// Parses one top-level value.
pub(super) fn parse(bytes: &[u8], is_at_end: bool) -> Result<Parsed, Stop> {
    let mut parser = Parser { bytes, position: 0, is_at_end, values: Values::default() };
    parser.skip_space()?;
    if parser.peek()?.is_none() {
        return Ok(Parsed { length: parser.position, content: Content::Nothing });
    }
    let content = match parser.annotated(0)? {
        Found::Symbol(name) if name == "$ion_1_0" => Content::Nothing,
        Found::Symbol(_) => Content::Value(Err(ContentError::NoItem)),
        Found::Value(value) => Content::Value(parser.values.finish(value)),
    };
    Ok(Parsed { length: parser.position, content })
}

struct Parser<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Whether no bytes follow. Otherwise a token that touches the end may continue.
    is_at_end: bool,
    values: Values,
}

enum Found {
    Value(AttributeValue),
    /// A symbol without quotes, or with: only the name of an annotation or a version marker.
    Symbol(String),
}

impl Parser<'_> {
    fn peek(&self) -> Result<Option<u8>, Stop> {
        match self.bytes.get(self.position) {
            Some(byte) => Ok(Some(*byte)),
            None if self.is_at_end => Ok(None),
            None => Err(Stop::Incomplete),
        }
    }

    /// The next byte of something that has begun, so that the file can't end here.
    fn next(&mut self) -> Result<u8, Stop> {
        let byte = *self.bytes.get(self.position).ok_or(Stop::Incomplete)?;
        self.position += 1;
        Ok(byte)
    }

    fn starts_with(&self, token: &[u8]) -> Result<bool, Stop> {
        let rest = &self.bytes[self.position..];
        if rest.len() < token.len() && !self.is_at_end && token.starts_with(rest) {
            return Err(Stop::Incomplete);
        }
        Ok(rest.starts_with(token))
    }

    fn take(&mut self, token: &[u8]) -> Result<bool, Stop> {
        let found = self.starts_with(token)?;
        self.position += if found { token.len() } else { 0 };
        Ok(found)
    }

    fn skip_space(&mut self) -> Result<(), Stop> {
        loop {
            match self.peek()? {
                Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) => self.position += 1,
                Some(b'/') if self.take(b"//")? => {
                    while self.peek()?.is_some_and(|byte| byte != b'\n') {
                        self.position += 1;
                    }
                }
                Some(b'/') if self.take(b"/*")? => {
                    while !self.take(b"*/")? {
                        self.next()?;
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// A value with its annotations.
    fn annotated(&mut self, depth: usize) -> Result<Found, Stop> {
        let mut set = None;
        loop {
            self.skip_space()?;
            let found = self.value_or_symbol(depth, set)?;
            let Found::Symbol(name) = found else { return Ok(found) };
            let end = self.position;
            self.skip_space()?;
            if !self.take(b"::")? {
                self.position = end;
                return Ok(Found::Symbol(name));
            }
            set = set.or(set_type(&name));
        }
    }

    fn value(&mut self, depth: usize) -> Result<AttributeValue, Stop> {
        Ok(match self.annotated(depth)? {
            Found::Value(value) => value,
            Found::Symbol(_) => self.values.fail(ContentError::NoSuchType("a symbol")),
        })
    }

    fn value_or_symbol(&mut self, depth: usize, set: Option<AttributeType>) -> Result<Found, Stop> {
        if depth > DEPTH_MAX {
            return Err(Stop::Syntax("values are nested too deeply"));
        }
        let value = match self.peek()?.ok_or(Stop::Incomplete)? {
            b'{' if self.take(b"{{")? => self.blob()?,
            b'{' => self.structure(depth)?,
            b'[' => {
                let members = self.list(depth)?;
                self.values.list(members, set)
            }
            b'"' => AttributeValue::S(self.quoted(b'"')?),
            b'\'' if self.starts_with(b"'''")? => AttributeValue::S(self.long_string()?),
            b'\'' => return self.quoted(b'\'').map(Found::Symbol),
            b'(' => return Err(Stop::Syntax("an S-expression, which no item holds")),
            b'-' | b'+' | b'0'..=b'9' => self.number()?,
            byte if is_identifier_start(byte) => return self.word(),
            _ => return Err(Stop::Syntax("no value begins with this character")),
        };
        Ok(Found::Value(value))
    }

    fn structure(&mut self, depth: usize) -> Result<AttributeValue, Stop> {
        self.position += 1;
        let mut members = Attributes::new();
        loop {
            self.skip_space()?;
            let name = match self.peek()?.ok_or(Stop::Incomplete)? {
                b'}' => break,
                b'"' => self.quoted(b'"')?,
                b'\'' if self.starts_with(b"'''")? => self.long_string()?,
                b'\'' => self.quoted(b'\'')?,
                byte if is_identifier_start(byte) => self.identifier()?.to_owned(),
                _ => return Err(Stop::Syntax("the name of a field was expected")),
            };
            self.values.check_name(&name);
            self.skip_space()?;
            if self.next()? != b':' {
                return Err(Stop::Syntax("a colon was expected"));
            }
            let value = self.value(depth + 1)?;
            members.insert(name, value);
            self.separator(b'}')?;
        }
        self.position += 1;
        Ok(AttributeValue::M(members))
    }

    fn list(&mut self, depth: usize) -> Result<Vec<AttributeValue>, Stop> {
        self.position += 1;
        let mut members = Vec::new();
        loop {
            self.skip_space()?;
            if self.peek()?.ok_or(Stop::Incomplete)? == b']' {
                break;
            }
            members.push(self.value(depth + 1)?);
            self.separator(b']')?;
        }
        self.position += 1;
        Ok(members)
    }

    /// A comma, unless the end follows.
    fn separator(&mut self, end: u8) -> Result<(), Stop> {
        self.skip_space()?;
        match self.peek()?.ok_or(Stop::Incomplete)? {
            b',' => self.position += 1,
            byte if byte == end => {}
            _ => return Err(Stop::Syntax("a comma was expected")),
        }
        Ok(())
    }

    /// A blob, or a clob, after its opening braces.
    fn blob(&mut self) -> Result<AttributeValue, Stop> {
        let mut text = Vec::new();
        loop {
            match self.next()? {
                b'}' if self.take(b"}")? => break,
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => {}
                b'"' => {
                    self.position -= 1;
                    self.quoted(b'"')?;
                    text.push(b'"');
                }
                b'\'' if self.take(b"''")? => {
                    self.position -= 3;
                    self.long_string()?;
                    text.push(b'"');
                }
                byte => text.push(byte),
            }
        }
        if text.first() == Some(&b'"') {
            return Ok(self.values.fail(ContentError::NoSuchType("a clob")));
        }
        match STANDARD.decode(&text) {
            Ok(bytes) => Ok(AttributeValue::B(bytes)),
            Err(_) => Err(Stop::Syntax("a blob is not base64")),
        }
    }

    /// A string or a quoted symbol.
    fn quoted(&mut self, quote: u8) -> Result<String, Stop> {
        self.position += 1;
        let mut text = Vec::new();
        loop {
            match self.next()? {
                byte if byte == quote => return utf8(text),
                b'\\' => self.escape(&mut text)?,
                b'\n' => return Err(Stop::Syntax("a line ends within a string")),
                byte => text.push(byte),
            }
        }
    }

    /// Segments between triple quotes, which together are one string.
    fn long_string(&mut self) -> Result<String, Stop> {
        let mut text = Vec::new();
        while self.take(b"'''")? {
            while !self.take(b"'''")? {
                match self.next()? {
                    b'\\' => self.escape(&mut text)?,
                    // Ion reads every end of a line as a line feed.
                    b'\r' => {
                        self.take(b"\n")?;
                        text.push(b'\n');
                    }
                    byte => text.push(byte),
                }
            }
            self.skip_space()?;
        }
        utf8(text)
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), Stop> {
        let plain = match self.next()? {
            b'0' => 0,
            b'a' => 0x07,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'f' => 0x0c,
            b'r' => b'\r',
            b'v' => 0x0b,
            byte @ (b'?' | b'/' | b'\\' | b'"' | b'\'') => byte,
            b'\n' => return Ok(()),
            b'\r' => return self.take(b"\n").map(drop),
            b'x' => return push(text, self.hexadecimal(2)?),
            b'u' => {
                let unit = self.hexadecimal(4)?;
                return self.after_unit(unit, text);
            }
            b'U' => return push(text, self.hexadecimal(8)?),
            _ => return Err(Stop::Syntax("an unknown escape")),
        };
        text.push(plain);
        Ok(())
    }

    /// A character whose first, or only, UTF-16 unit is known.
    fn after_unit(&mut self, unit: u32, text: &mut Vec<u8>) -> Result<(), Stop> {
        if !(0xd800..0xdc00).contains(&unit) {
            return push(text, unit);
        }
        if !self.take(b"\\u")? {
            return Err(Stop::Syntax("half of a surrogate pair"));
        }
        match self.hexadecimal(4)? {
            low @ 0xdc00..0xe000 => push(text, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)),
            _ => Err(Stop::Syntax("half of a surrogate pair")),
        }
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<u32, Stop> {
        let mut number = 0_u32;
        for _ in 0..digits {
            let digit = char::from(self.next()?).to_digit(16);
            number =
                (number << 4) | digit.ok_or(Stop::Syntax("a hexadecimal digit was expected"))?;
        }
        Ok(number)
    }

    /// The bytes up to the end of a number or an identifier.
    fn run(&mut self, belongs: impl Fn(u8) -> bool) -> Result<&str, Stop> {
        let start = self.position;
        while self.peek()?.is_some_and(&belongs) {
            self.position += 1;
        }
        let run = &self.bytes[start..self.position];
        std::str::from_utf8(run).map_err(|_| Stop::Syntax("text that is not UTF-8"))
    }

    fn identifier(&mut self) -> Result<&str, Stop> {
        self.run(|byte| is_identifier_start(byte) || byte.is_ascii_digit())
    }

    fn number(&mut self) -> Result<AttributeValue, Stop> {
        let is_part = |byte: u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'+' | b'-' | b':')
        };
        let text = self.run(is_part)?.to_owned();
        if matches!(text.as_str(), "+inf" | "-inf") {
            return Ok(self.values.fail(ContentError::NoSuchType("infinity")));
        }
        if text.contains(':') || is_date(&text) {
            return Ok(self.values.fail(ContentError::NoSuchType("a timestamp")));
        }
        let plain = text.replace('_', "");
        let unsigned = plain.trim_start_matches('-');
        let sign = if plain.starts_with('-') { "-" } else { "" };
        let radix = match unsigned.get(..2) {
            Some("0x" | "0X") => Some(16),
            Some("0b" | "0B") => Some(2),
            _ => None,
        };
        let decimal = match radix {
            None => plain.replace(['d', 'D'], "e"),
            Some(radix) => match u128::from_str_radix(&unsigned[2..], radix) {
                Ok(magnitude) => format!("{sign}{magnitude}"),
                Err(_) => return Err(Stop::Syntax("an integer that is too long, or not one")),
            },
        };
        Ok(self.values.number(&decimal))
    }

    /// A keyword, a null with a type, or a symbol.
    fn word(&mut self) -> Result<Found, Stop> {
        let value = match self.identifier()? {
            "true" => AttributeValue::Bool(true),
            "false" => AttributeValue::Bool(false),
            "nan" => self.values.fail(ContentError::NoSuchType("nan")),
            "null" => {
                if self.take(b".")? {
                    self.identifier()?;
                }
                AttributeValue::Null
            }
            symbol => return Ok(Found::Symbol(symbol.to_owned())),
        };
        Ok(Found::Value(value))
    }
}

fn is_identifier_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$')
}

/// Four digits, then `T` or a hyphen: the start of a timestamp.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() > 4 && bytes[..4].iter().all(u8::is_ascii_digit) && matches!(bytes[4], b'T' | b'-')
}

fn push(text: &mut Vec<u8>, character: u32) -> Result<(), Stop> {
    let character = char::from_u32(character).ok_or(Stop::Syntax("no such character"))?;
    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(())
}

fn utf8(text: Vec<u8>) -> Result<String, Stop> {
    String::from_utf8(text).map_err(|_| Stop::Syntax("text that is not UTF-8"))
}
