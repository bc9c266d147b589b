//! Ion's binary encoding.

use zenobe_value::{AttributeType, AttributeValue, Attributes};

use super::records::{Values, set_type};
use super::{Content, DEPTH_MAX, Parsed, Stop};
use crate::byte_window::RECORD_SIZE_BYTES_MAX;
use crate::read_error::ContentError;

/// What every file begins with, and may repeat between values.
const VERSION_MARKER: [u8; 4] = [0xe0, 0x01, 0x00, 0xea];

/// The symbols that every file knows, from id 1.
const SYSTEM_SYMBOLS: [&str; 9] = [
    "$ion",
    "$ion_1_0",
    "$ion_symbol_table",
    "name",
    "version",
    "imports",
    "symbols",
    "max_id",
    "$ion_shared_symbol_table",
];
const SYMBOL_TABLE: u64 = 3;
const IMPORTS: u64 = 6;
const SYMBOLS: u64 = 7;

/// How many symbols a file may have, and how many bytes of text. A table may extend the one before, so the size of a
/// value does not limit them.
const SYMBOLS_MAX: usize = 1_000_000;
const SYMBOLS_SIZE_BYTES_MAX: usize = RECORD_SIZE_BYTES_MAX;

/// The symbols that the file has defined so far. Their ids follow those of the system's symbols.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    texts: Vec<String>,
    size_bytes: usize,
}

impl Symbols {
    fn clear(&mut self) {
        *self = Symbols::default();
    }

    fn add(&mut self, text: &str) -> Result<(), Stop> {
        self.size_bytes += text.len();
        if self.texts.len() == SYMBOLS_MAX || self.size_bytes > SYMBOLS_SIZE_BYTES_MAX {
            return Err(Stop::Syntax("more than a million symbols, or 16 MiB of them"));
        }
        self.texts.push(text.to_owned());
        Ok(())
    }

    fn text(&self, id: u64) -> Option<&str> {
        let index = usize::try_from(id).ok()?.checked_sub(1)?;
        match SYSTEM_SYMBOLS.get(index) {
            Some(symbol) => Some(symbol),
            None => self.texts.get(index - SYSTEM_SYMBOLS.len()).map(String::as_str),
        }
    }
}

/// Parses one top-level value.
pub(super) fn parse(bytes: &[u8], symbols: &mut Symbols) -> Result<Parsed, Stop> {
    if bytes.len() < VERSION_MARKER.len() && VERSION_MARKER.starts_with(bytes) {
        return Err(Stop::Incomplete);
    }
    if bytes.starts_with(&VERSION_MARKER) {
        symbols.clear();
        return Ok(Parsed { length: VERSION_MARKER.len(), content: Content::Nothing });
    }
    let mut reader = Reader { bytes, position: 0 };
    let header = reader.header()?;
    let body = reader.take(header.length)?;
    let length = reader.position;
    if header.kind == Kind::Annotated {
        let mut inner = Reader::new(body);
        if inner.annotations()?.first() == Some(&SYMBOL_TABLE) {
            define_symbols(&mut inner, symbols)?;
            return Ok(Parsed { length, content: Content::Nothing });
        }
    }
    if header.kind == Kind::Padding {
        return Ok(Parsed { length, content: Content::Nothing });
    }
    let mut decoder = Decoder { symbols, values: Values::default() };
    let value = decoder.value(&header, body, None, 0)?;
    Ok(Parsed { length, content: Content::Value(decoder.values.finish(value)) })
}

/// Reads a local symbol table, `{imports: …, symbols: […]}`.
fn define_symbols(table: &mut Reader<'_>, symbols: &mut Symbols) -> Result<(), Stop> {
    let header = table.header()?;
    let mut fields = Reader::new(table.take(header.length)?);
    let mut continues = false;
    let mut defined = Vec::new();
    while !fields.is_at_end() {
        let field = fields.variable()?;
        let header = fields.header()?;
        let body = fields.take(header.length)?;
        match (field, header.kind) {
            (IMPORTS, Kind::Symbol) => continues = unsigned(body)? == u128::from(SYMBOL_TABLE),
            (IMPORTS, Kind::List) if !body.is_empty() => return Err(Stop::SharedSymbols),
            (SYMBOLS, Kind::List) => {
                let mut members = Reader::new(body);
                while !members.is_at_end() {
                    let header = members.header()?;
                    // Anything but a string is a symbol without a text.
                    let text = members.take(header.length)?;
                    let text = if header.kind == Kind::String { text } else { &[] };
                    defined.push(utf8(text)?);
                    if defined.len() > SYMBOLS_MAX {
                        // More than can be added below.
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    if !continues {
        symbols.clear();
    }
    defined.into_iter().try_for_each(|text| symbols.add(text))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Padding,
    Null,
    Bool(bool),
    Integer { negative: bool },
    Float,
    Decimal,
    Timestamp,
    Symbol,
    String,
    Clob,
    Blob,
    List,
    Expression,
    Structure,
    Annotated,
}

struct Header {
    kind: Kind,
    /// The length of what follows.
    length: usize,
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, position: 0 }
    }

    fn is_at_end(&self) -> bool {
        self.position == self.bytes.len()
    }

    fn byte(&mut self) -> Result<u8, Stop> {
        let byte = *self.bytes.get(self.position).ok_or(Stop::Incomplete)?;
        self.position += 1;
        Ok(byte)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Stop> {
        let rest = &self.bytes[self.position..];
        let taken = rest.get(..length).ok_or(Stop::Incomplete)?;
        self.position += length;
        Ok(taken)
    }

    /// A number of seven bits per byte; the last byte has its high bit set.
    fn variable(&mut self) -> Result<u64, Stop> {
        let mut number = 0_u64;
        loop {
            let byte = self.byte()?;
            if number > u64::MAX >> 7 {
                return Err(Stop::Syntax("a length that no file has"));
            }
            number = number << 7 | u64::from(byte & 0x7f);
            if byte & 0x80 != 0 {
                return Ok(number);
            }
        }
    }

    /// The same, with a sign in the second bit of the first byte.
    fn signed_variable(&mut self) -> Result<i64, Stop> {
        let first = self.byte()?;
        let negative = first & 0x40 != 0;
        let mut number = i64::from(first & 0x3f);
        let mut last = first;
        while last & 0x80 == 0 {
            last = self.byte()?;
            if number > i64::MAX >> 7 {
                return Err(Stop::Syntax("an exponent that no number has"));
            }
            number = number << 7 | i64::from(last & 0x7f);
        }
        Ok(if negative { -number } else { number })
    }

    fn header(&mut self) -> Result<Header, Stop> {
        let descriptor = self.byte()?;
        let (high, low) = (descriptor >> 4, descriptor & 0x0f);
        let kind = match (high, low) {
            (0, 15) | (1..=13, 15) => return Ok(Header { kind: Kind::Null, length: 0 }),
            (0, _) => Kind::Padding,
            (1, 0 | 1) => return Ok(Header { kind: Kind::Bool(low == 1), length: 0 }),
            (2, _) => Kind::Integer { negative: false },
            (3, _) => Kind::Integer { negative: true },
            (4, _) => Kind::Float,
            (5, _) => Kind::Decimal,
            (6, _) => Kind::Timestamp,
            (7, _) => Kind::Symbol,
            (8, _) => Kind::String,
            (9, _) => Kind::Clob,
            (10, _) => Kind::Blob,
            (11, _) => Kind::List,
            (12, _) => Kind::Expression,
            (13, _) => Kind::Structure,
            (14, 3..=14) => Kind::Annotated,
            _ => return Err(Stop::Syntax("no value begins with this byte")),
        };
        let length = match low {
            14 => self.length()?,
            // A structure whose fields are in order.
            1 if kind == Kind::Structure => self.length()?,
            low => usize::from(low),
        };
        Ok(Header { kind, length })
    }

    fn length(&mut self) -> Result<usize, Stop> {
        let length = self.variable()?;
        usize::try_from(length).map_err(|_| Stop::Syntax("a length that no file has"))
    }

    fn annotations(&mut self) -> Result<Vec<u64>, Stop> {
        let length = self.length()?;
        let mut ids = Reader::new(self.take(length)?);
        let mut annotations = Vec::new();
        while !ids.is_at_end() {
            annotations.push(ids.variable()?);
        }
        Ok(annotations)
    }
}

struct Decoder<'s> {
    symbols: &'s Symbols,
    values: Values,
}

impl Decoder<'_> {
    fn value(
        &mut self,
        header: &Header,
        body: &[u8],
        set: Option<AttributeType>,
        depth: usize,
    ) -> Result<AttributeValue, Stop> {
        if depth > DEPTH_MAX {
            return Err(Stop::Syntax("values are nested too deeply"));
        }
        Ok(match header.kind {
            Kind::Null | Kind::Padding => AttributeValue::Null,
            Kind::Bool(flag) => AttributeValue::Bool(flag),
            Kind::Integer { negative } => {
                let sign = if negative { "-" } else { "" };
                self.values.number(&format!("{sign}{}", unsigned(body)?))
            }
            Kind::Decimal => self.decimal(body)?,
            Kind::Float => self.float(body)?,
            Kind::String => AttributeValue::S(utf8(body)?.to_owned()),
            Kind::Blob => AttributeValue::B(body.to_owned()),
            Kind::List => {
                let members = self.members(body, depth)?;
                self.values.list(members, set)
            }
            Kind::Structure => self.structure(body, depth)?,
            Kind::Annotated => self.annotated(body, depth)?,
            Kind::Timestamp => self.values.fail(ContentError::NoSuchType("a timestamp")),
            Kind::Symbol => self.values.fail(ContentError::NoSuchType("a symbol")),
            Kind::Clob => self.values.fail(ContentError::NoSuchType("a clob")),
            Kind::Expression => self.values.fail(ContentError::NoSuchType("an S-expression")),
        })
    }

    fn annotated(&mut self, body: &[u8], depth: usize) -> Result<AttributeValue, Stop> {
        let mut reader = Reader::new(body);
        let annotations = inner(reader.annotations())?;
        let texts = annotations.iter().filter_map(|id| self.symbols.text(*id));
        let set = texts.filter_map(set_type).next();
        let header = inner(reader.header())?;
        let body = inner(reader.take(header.length))?;
        self.value(&header, body, set, depth + 1)
    }

    fn members(&mut self, body: &[u8], depth: usize) -> Result<Vec<AttributeValue>, Stop> {
        let mut reader = Reader::new(body);
        let mut members = Vec::new();
        while !reader.is_at_end() {
            let header = inner(reader.header())?;
            let body = inner(reader.take(header.length))?;
            if header.kind != Kind::Padding {
                members.push(self.value(&header, body, None, depth + 1)?);
            }
        }
        Ok(members)
    }

    fn structure(&mut self, body: &[u8], depth: usize) -> Result<AttributeValue, Stop> {
        let mut reader = Reader::new(body);
        let mut members = Attributes::new();
        while !reader.is_at_end() {
            let id = inner(reader.variable())?;
            let header = inner(reader.header())?;
            let body = inner(reader.take(header.length))?;
            if header.kind == Kind::Padding {
                continue;
            }
            let unknown = Stop::Syntax("a field with an unknown symbol");
            let name = self.symbols.text(id).ok_or(unknown)?.to_owned();
            self.values.check_name(&name);
            let value = self.value(&header, body, None, depth + 1)?;
            members.insert(name, value);
        }
        Ok(AttributeValue::M(members))
    }

    fn decimal(&mut self, body: &[u8]) -> Result<AttributeValue, Stop> {
        if body.is_empty() {
            return Ok(self.values.number("0"));
        }
        let mut reader = Reader::new(body);
        let exponent = inner(reader.signed_variable())?;
        let coefficient = &body[reader.position..];
        let (sign, magnitude) = match coefficient.split_first() {
            None => ("", 0),
            Some((first, rest)) => {
                let mut bytes = vec![first & 0x7f];
                bytes.extend_from_slice(rest);
                (if first & 0x80 != 0 { "-" } else { "" }, unsigned(&bytes)?)
            }
        };
        Ok(self.values.number(&format!("{sign}{magnitude}e{exponent}")))
    }

    fn float(&mut self, body: &[u8]) -> Result<AttributeValue, Stop> {
        let number = if let Ok(bytes) = body.try_into() {
            f64::from_be_bytes(bytes)
        } else if let Ok(bytes) = body.try_into() {
            f32::from_be_bytes(bytes).into()
        } else if body.is_empty() {
            0.0
        } else {
            return Err(Stop::Syntax("a float of an impossible length"));
        };
        Ok(match number.is_finite() {
            true => self.values.number(&number.to_string()),
            false => self.values.fail(ContentError::NoSuchType("a float that is not finite")),
        })
    }
}

/// A magnitude. DynamoDB's numbers have 38 digits, which 16 bytes hold; a longer one is damaged or
/// no number of an item.
fn unsigned(bytes: &[u8]) -> Result<u128, Stop> {
    let significant = bytes.iter().position(|byte| *byte != 0).map_or(&[][..], |at| &bytes[at..]);
    if significant.len() > size_of::<u128>() {
        return Err(Stop::Syntax("a number of more than 38 digits"));
    }
    Ok(significant.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

fn utf8(bytes: &[u8]) -> Result<&str, Stop> {
    std::str::from_utf8(bytes).map_err(|_| Stop::Syntax("text that is not UTF-8"))
}

/// Within a value whose length is known, bytes that are missing will never come.
fn inner<T>(outcome: Result<T, Stop>) -> Result<T, Stop> {
    outcome.map_err(|stop| match stop {
        Stop::Incomplete => Stop::Syntax("a value is longer than what contains it"),
        other => other,
    })
}
