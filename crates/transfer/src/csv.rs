//! CSV by the rules of ImportTable: the attributes that are keys have the types of their
//! definitions, all others are strings, and an empty field is not an attribute.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use ::csv::{ErrorKind, ReaderBuilder, StringRecord};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zenobe_value::{AttributeType, AttributeValue, Attributes, Number};

use crate::Record;
use crate::byte_window::RECORD_SIZE_BYTES_MAX;
use crate::compression::read_error;
use crate::ion::shortened;
use crate::read_error::{ContentError, ReadError};

/// The delimiters that ImportTable allows, by its names.
pub const DELIMITERS: [&str; 6] = [",", "\t", ":", ";", "|", " "];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvOptions {
    pub delimiter: u8,
    /// The names of the columns. Without them the first line of each file has them.
    pub header: Option<Vec<String>>,
    /// The types of attributes that are not strings: those of keys.
    pub types: BTreeMap<String, AttributeType>,
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        CsvOptions { delimiter: b',', header: None, types: BTreeMap::new() }
    }
}

/// Ends a record that is too long, such as one whose quote is never closed.
struct Bounded<R> {
    reader: R,
    left: usize,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other("the record is too long"));
        }
        let count = self.reader.read(buffer)?;
        self.left = self.left.saturating_sub(count);
        Ok(count)
    }
}

pub struct CsvReader<R> {
    reader: ::csv::Reader<Bounded<R>>,
    options: CsvOptions,
    record: StringRecord,
}

impl<R: Read> CsvReader<R> {
    pub fn new(reader: R, options: CsvOptions) -> CsvReader<R> {
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(options.delimiter)
            .from_reader(Bounded { reader, left: RECORD_SIZE_BYTES_MAX });
        CsvReader { reader, options, record: StringRecord::new() }
    }

    /// The next record, or `None` after the last one.
    ///
    /// # Errors
    /// Only after [`ReadError::Record`] can more be read.
    pub fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        if self.options.header.is_none() {
            if !self.read()? {
                return Ok(None);
            }
            self.options.header = Some(header(&self.record).map_err(ReadError::File)?);
        }
        if !self.read()? {
            return Ok(None);
        }
        let header = self.options.header.as_deref().unwrap_or_default();
        let item = item(header, &self.record, &self.options.types).map_err(ReadError::Record)?;
        Ok(Some(Record::Item(item)))
    }

    fn read(&mut self) -> Result<bool, ReadError> {
        self.reader.get_mut().left = RECORD_SIZE_BYTES_MAX;
        self.reader.read_record(&mut self.record).map_err(|error| {
            let text = error.to_string();
            match error.into_kind() {
                ErrorKind::Io(_) if self.reader.get_ref().left == 0 => {
                    ReadError::File(ContentError::TooLong { limit: RECORD_SIZE_BYTES_MAX })
                }
                ErrorKind::Io(error) => read_error(error),
                _ => ReadError::File(ContentError::Csv(text)),
            }
        })
    }
}

fn header(record: &StringRecord) -> Result<Vec<String>, ContentError> {
    let mut names: Vec<String> = record.iter().map(str::to_owned).collect();
    if let Some(first) = names.first_mut() {
        *first = first.trim_start_matches('\u{feff}').to_owned();
    }
    let distinct: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    if distinct.len() < names.len() || distinct.contains("") {
        return Err(ContentError::Header(shortened(&names.join(","))));
    }
    Ok(names)
}

fn item(
    header: &[String],
    record: &StringRecord,
    types: &BTreeMap<String, AttributeType>,
) -> Result<Attributes, ContentError> {
    if record.len() != header.len() {
        return Err(ContentError::Columns { actual: record.len(), expected: header.len() });
    }
    let fields = header.iter().zip(record).filter(|(_, field)| !field.is_empty());
    fields.map(|(name, field)| Ok((name.clone(), value(name, field, types)?))).collect()
}

fn value(
    name: &str,
    field: &str,
    types: &BTreeMap<String, AttributeType>,
) -> Result<AttributeValue, ContentError> {
    match types.get(name) {
        Some(AttributeType::N) => Number::parse(field)
            .map(AttributeValue::N)
            .map_err(|error| ContentError::Number { text: shortened(field), error }),
        Some(AttributeType::B) => STANDARD
            .decode(field)
            .map(AttributeValue::B)
            .map_err(|_| ContentError::Base64 { attribute: name.to_owned() }),
        _ => Ok(AttributeValue::S(field.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_that_is_never_closed_takes_bounded_memory() {
        let endless = "pk\n\"".as_bytes().chain(io::repeat(b'x'));
        let error = CsvReader::new(endless, CsvOptions::default()).next_record().unwrap_err();
        assert!(matches!(error, ReadError::File(ContentError::TooLong { .. })), "{error}");
    }

    fn read(text: &str, options: CsvOptions) -> Vec<Result<Attributes, String>> {
        let mut reader = CsvReader::new(text.as_bytes(), options);
        let mut records = Vec::new();
        loop {
            match reader.next_record() {
                Ok(None) => return records,
                Ok(Some(Record::Item(item))) => records.push(Ok(item)),
                Ok(Some(other)) => panic!("{other:?}"),
                Err(error @ ReadError::Record(_)) => records.push(Err(error.to_string())),
                Err(error) => {
                    records.push(Err(format!("end: {error}")));
                    return records;
                }
            }
        }
    }

    fn text(value: &str) -> AttributeValue {
        AttributeValue::S(value.to_owned())
    }

    #[test]
    fn keys_have_their_types_and_the_rest_are_strings() {
        let types = [("pk", AttributeType::N), ("sk", AttributeType::B)];
        let types = types.map(|(name, of)| (name.to_owned(), of)).into();
        let options = CsvOptions { types, ..CsvOptions::default() };
        let file =
            "\u{feff}pk,sk,a,b\r\n1.50,AAE=,2,\"x,\"\"y\nz\"\n\n2,,,é\nx,AA==,,\n3,?,,\n4,AA==\n";
        let records = read(file, options);
        let first = Attributes::from([
            ("pk".into(), AttributeValue::N(Number::parse("1.5").unwrap())),
            ("sk".into(), AttributeValue::B(vec![0, 1])),
            ("a".into(), text("2")),
            ("b".into(), text("x,\"y\nz")),
        ]);
        assert_eq!(records[0], Ok(first));
        assert_eq!(records[1].as_ref().unwrap().len(), 2, "empty fields are not attributes");
        let errors: Vec<&str> =
            records[2..].iter().map(|record| record.as_ref().unwrap_err().as_str()).collect();
        assert_eq!(
            errors,
            [
                "`x` is not a DynamoDB number: the text is not a number",
                "attribute sk is not base64",
                "2 fields where the header has 4",
            ]
        );
    }

    #[test]
    fn a_given_header_makes_the_first_line_data() {
        for delimiter in DELIMITERS {
            let header = Some(vec!["pk".to_owned(), "a".to_owned()]);
            let delimiter = delimiter.as_bytes()[0];
            let options = CsvOptions { delimiter, header, ..CsvOptions::default() };
            let file = format!("x{0}y\nz{0}\"a{0}b\"\n", char::from(delimiter));
            let records = read(&file, options);
            let first = Attributes::from([("pk".into(), text("x")), ("a".into(), text("y"))]);
            assert_eq!(records[0], Ok(first));
            assert_eq!(records.len(), 2);
        }
    }

    #[test]
    fn a_header_that_names_a_column_twice_ends_the_file() {
        for file in ["a,a\n1,2\n", "a,\n1,2\n"] {
            let records = read(file, CsvOptions::default());
            assert!(records[0].as_ref().unwrap_err().starts_with("end: the header"), "{records:?}");
            assert_eq!(records.len(), 1);
        }
        assert!(read("", CsvOptions::default()).is_empty());
        assert!(read("a,b\n", CsvOptions::default()).is_empty());
        let file = "pk\nx\n\u{0}";
        assert_eq!(read(file, CsvOptions::default()).len(), 2);
    }
}
