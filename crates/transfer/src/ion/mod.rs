//! Amazon Ion, as far as items need it.
//!
//! Hand-written: DynamoDB's values use half of Ion's types, its numbers are decimals of 38 digits
//! which this workspace has already, and items must be read one by one from streams of any length.
//! The ion-rs crate would add some twenty crates and still leave that work.

mod binary;
mod records;
mod text;
mod write;

use std::io::Read;

use zenobe_value::AttributeValue;

use crate::Record;
use crate::byte_window::{ByteSource, RECORD_SIZE_BYTES_MAX};
use crate::compression::read_error;
use crate::read_error::{ContentError, ReadError};

pub(crate) use records::shortened;
pub use write::{write_change, write_item};

/// Reads a file of Ion values, in text or binary.
pub struct IonReader<R> {
    source: ByteSource<R>,
    encoding: Encoding,
    returns_others: bool,
}

enum Encoding {
    Unknown,
    Text,
    Binary(binary::Symbols),
}

/// Why a parser has no value to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// The bytes so far are the start of a value.
    Incomplete,
    Syntax(&'static str),
    SharedSymbols,
}

/// What a parser found at the top level, and how many bytes that took.
struct Parsed {
    length: usize,
    content: Content,
}

enum Content {
    /// Nothing but white space, comments, version markers or symbol tables.
    Nothing,
    Value(Result<AttributeValue, ContentError>),
}

/// The first bytes of a binary file, which no text begins with.
const BINARY_START: u8 = 0xe0;

/// Lists and structures within one another. Items have fewer, and a parser must not exhaust its
/// stack.
const DEPTH_MAX: usize = 256;

impl<R: Read> IonReader<R> {
    pub fn new(reader: R) -> IonReader<R> {
        let (encoding, returns_others) = (Encoding::Unknown, false);
        IonReader { source: ByteSource::new(reader), encoding, returns_others }
    }

    /// Returns what a record has besides its item, for callers who must not ignore it.
    pub fn with_others(self) -> IonReader<R> {
        IonReader { returns_others: true, ..self }
    }

    /// The next record, or `None` after the last one.
    ///
    /// # Errors
    /// Only after [`ReadError::Record`] can more be read.
    pub fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            let (window, is_at_end) = (self.source.window(), self.source.is_at_end());
            if window.is_empty() && is_at_end {
                return Ok(None);
            }
            let parsed = match (&mut self.encoding, window.first()) {
                (_, None) => Err(Stop::Incomplete),
                (Encoding::Unknown, Some(&BINARY_START)) => {
                    self.encoding = Encoding::Binary(binary::Symbols::default());
                    continue;
                }
                (Encoding::Unknown, Some(_)) => {
                    self.encoding = Encoding::Text;
                    continue;
                }
                (Encoding::Text, Some(_)) => text::parse(window, is_at_end),
                (Encoding::Binary(symbols), Some(_)) => binary::parse(window, symbols),
            };
            match parsed {
                Ok(Parsed { length, content }) => {
                    self.source.consume(length);
                    if let Content::Value(value) = content {
                        let with_others = self.returns_others;
                        let record = value.and_then(|value| records::record(value, with_others));
                        return record.map(Some).map_err(ReadError::Record);
                    }
                }
                Err(Stop::Incomplete) if !is_at_end => self.grow()?,
                Err(Stop::Incomplete) => {
                    return Err(self.syntax_error("the file ends within a value"));
                }
                Err(Stop::Syntax(problem)) => return Err(self.syntax_error(problem)),
                Err(Stop::SharedSymbols) => {
                    return Err(ReadError::File(ContentError::SharedSymbols));
                }
            }
        }
    }

    fn grow(&mut self) -> Result<(), ReadError> {
        if self.source.window().len() > RECORD_SIZE_BYTES_MAX {
            return Err(ReadError::File(ContentError::TooLong { limit: RECORD_SIZE_BYTES_MAX }));
        }
        self.source.grow().map_err(read_error)
    }

    fn syntax_error(&self, problem: &'static str) -> ReadError {
        ReadError::File(ContentError::Syntax { position: self.source.position(), problem })
    }
}

#[cfg(test)]
mod tests;
