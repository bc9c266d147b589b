//! The values of one leaf of the schema, as pages.
//!
//! A value that is missing leaves a trace only in the definition levels, which say how much of the path to a value is there.
//! Repetition levels say whether a value begins a row or goes on in its list.

use std::io::Write;

use zenobe_value::{ValueRef, ValueView};

use super::infer::Scalar;
use super::thrift::{Thrift, push_varint};
use crate::compression::gzip;
use crate::plain_json::append_json;

/// When a page is full. Readers decompress a page at a time.
const PAGE_SIZE_BYTES: usize = 1 << 20;
const PAGE_VALUES_MAX: u32 = 100_000;
/// The bytes of a DECIMAL: 38 digits need 127 bits.
pub(super) const DECIMAL_LENGTH: i32 = 16;

pub(super) struct Leaf {
    pub path: Vec<String>,
    pub scalar: Scalar,
    pub definition_max: u8,
    pub is_repeated: bool,
    definitions: Levels,
    repetitions: Levels,
    values: Vec<u8>,
    /// How many bits of the last byte of values are taken, by booleans.
    bits: u8,
    count: u32,
    /// Finished pages.
    pub pages: Vec<u8>,
    pub value_count: u64,
    pub uncompressed_size_bytes: u64,
}

impl Leaf {
    pub fn new(path: &[&str], scalar: Scalar, definition_max: u8, is_repeated: bool) -> Leaf {
        Leaf {
            path: path.iter().map(|&name| name.to_owned()).collect(),
            scalar,
            definition_max,
            is_repeated,
            definitions: Levels::default(),
            repetitions: Levels::default(),
            values: Vec::new(),
            bits: 0,
            count: 0,
            pages: Vec::new(),
            value_count: 0,
            uncompressed_size_bytes: 0,
        }
    }

    /// How much memory it takes.
    pub fn size_bytes(&self) -> usize {
        self.pages.len() + self.values.len() + self.definitions.runs.len()
    }

    /// Notes that there is no value. `definition` says how much of the path to it is there.
    pub fn push_missing(&mut self, repetition: u8, definition: u8) {
        self.level(repetition, definition);
    }

    pub fn push(&mut self, repetition: u8, value: ValueRef<'_>) {
        self.level(repetition, self.definition_max);
        let out = &mut self.values;
        match (self.scalar, value.view()) {
            (Scalar::Json, _) => push_bytes(out, |out| append_json(out, value)),
            (Scalar::Text, ValueView::S(text)) => push_bytes(out, |out| out.extend(text.bytes())),
            (Scalar::Binary, ValueView::B(bytes)) => push_bytes(out, |out| out.extend(bytes)),
            (Scalar::Bool, ValueView::Bool(flag)) => self.push_bit(flag),
            (_, ValueView::N(text)) => self.push_number(text),
            _ => unreachable!("the column's type is that of all its values"),
        }
    }

    /// A member of a set.
    pub fn push_member(&mut self, repetition: u8, member: &[u8]) {
        self.level(repetition, self.definition_max);
        match self.scalar {
            Scalar::Text | Scalar::Binary => push_bytes(&mut self.values, |out| out.extend(member)),
            _ => self.push_number(std::str::from_utf8(member).expect("numbers are ASCII")),
        }
    }

    /// The key of a map.
    pub fn push_text(&mut self, repetition: u8, text: &str) {
        self.push_member(repetition, text.as_bytes());
    }

    fn level(&mut self, repetition: u8, definition: u8) {
        // A row never spans pages.
        let is_full = self.values.len() >= PAGE_SIZE_BYTES || self.count >= PAGE_VALUES_MAX;
        if is_full && repetition == 0 {
            self.end_page();
        }
        self.definitions.push(definition);
        if self.is_repeated {
            self.repetitions.push(repetition);
        }
        self.count += 1;
    }

    fn push_bit(&mut self, flag: bool) {
        if self.bits.is_multiple_of(8) {
            self.values.push(0);
            self.bits = 0;
        }
        if let Some(last) = self.values.last_mut() {
            *last |= u8::from(flag) << self.bits;
        }
        self.bits += 1;
    }

    fn push_number(&mut self, text: &str) {
        match self.scalar {
            Scalar::Int64 => {
                let number: i64 = text.parse().expect("the column's numbers are integers");
                self.values.extend(number.to_le_bytes());
            }
            Scalar::Decimal { scale, .. } => {
                self.values.extend(unscaled(text, scale.into()).to_be_bytes());
            }
            _ => {
                let number: f64 = text.parse().expect("a number is a number to others, too");
                self.values.extend(number.to_le_bytes());
            }
        }
    }

    pub fn end_page(&mut self) {
        if self.count == 0 {
            return;
        }
        let mut page = Vec::with_capacity(self.values.len() + 64);
        if self.is_repeated {
            self.repetitions.take(&mut page);
        }
        self.definitions.take(&mut page);
        page.append(&mut self.values);
        let mut compressed = gzip(Vec::with_capacity(page.len() / 2));
        compressed.write_all(&page).expect("memory takes everything");
        let compressed = compressed.finish().expect("memory takes everything");
        let size = |bytes: &[u8]| i32::try_from(bytes.len()).expect("pages are bounded");
        let header = Thrift::structure(|header| {
            header.i32(1, DATA_PAGE);
            header.i32(2, size(&page));
            header.i32(3, size(&compressed));
            header.nested(5, |header| {
                header.i32(1, i32::try_from(self.count).expect("pages are bounded"));
                header.i32(2, PLAIN);
                header.i32(3, RLE);
                header.i32(4, RLE);
            });
        });
        self.uncompressed_size_bytes += (header.len() + page.len()) as u64;
        self.pages.extend(header);
        self.pages.extend(compressed);
        self.value_count += u64::from(self.count);
        (self.count, self.bits) = (0, 0);
    }
}

const DATA_PAGE: i32 = 0;
pub(super) const PLAIN: i32 = 0;
pub(super) const RLE: i32 = 3;

/// A text or bytes, after their length.
fn push_bytes(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; 4]);
    write(out);
    let length = u32::try_from(out.len() - start - 4).expect("items are small");
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// A number times ten to the power of `scale`.
fn unscaled(text: &str, scale: usize) -> i128 {
    let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
    let zeros = scale.saturating_sub(fraction.len());
    let digits = integer.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit);
    let digits = digits.chain(std::iter::repeat_n(b'0', zeros));
    let magnitude = digits.fold(0_i128, |number, digit| 10 * number + i128::from(digit - b'0'));
    if text.starts_with('-') { -magnitude } else { magnitude }
}

/// Levels, as runs of equal ones. Each is its length and one byte.
#[derive(Default)]
struct Levels {
    runs: Vec<u8>,
    level: u8,
    length: u64,
}

impl Levels {
    fn push(&mut self, level: u8) {
        if level != self.level {
            self.end_run();
            self.level = level;
        }
        self.length += 1;
    }

    fn end_run(&mut self) {
        if self.length > 0 {
            push_varint(&mut self.runs, self.length << 1);
            self.runs.push(self.level);
            self.length = 0;
        }
    }

    /// Moves all levels to a page, after their length.
    fn take(&mut self, page: &mut Vec<u8>) {
        self.end_run();
        page.extend(u32::try_from(self.runs.len()).expect("pages are bounded").to_le_bytes());
        page.append(&mut self.runs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_scaled_exactly() {
        assert_eq!(unscaled("1.5", 3), 1_500);
        assert_eq!(unscaled("-0.007", 3), -7);
        assert_eq!(unscaled("12", 0), 12);
        assert_eq!(unscaled("99999999999999999999999999999999999999", 0), 10_i128.pow(38) - 1);
    }
}
