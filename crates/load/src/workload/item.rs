//! Renders keys and items as JSON.

use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{PARTITION_ITEMS, Shape};

/// How many categories the index has: few enough that each holds many items.
const CATEGORIES: u64 = 1000;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// How much longer the keys of new items are than those of loaded ones.
const NEW_KEY_LONGER_BYTES: usize = "new#0000000000000#".len() - "user#".len();

/// Names an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// An item loaded before the run.
    Loaded(u64),
    /// An item added by a run. Each run has its own keys, so none overwrites what another added.
    New { run: u64, number: u64 },
}

impl Key {
    #[inline]
    fn number(self) -> u64 {
        match self {
            Key::Loaded(number) | Key::New { number, .. } => number,
        }
    }
}

/// Knows the table's shape and holds the text that pads items.
#[derive(Debug, Clone)]
pub struct ItemWriter {
    shape: Shape,
    fill_size_bytes: usize,
    /// Random letters. Each item gets a slice of them, so that compression gains nothing
    /// unrealistic.
    letters: Arc<[u8]>,
}

impl ItemWriter {
    pub fn new(shape: Shape, item_bytes: usize, seed: u64) -> ItemWriter {
        let fill_size_bytes = item_bytes.saturating_sub(shape.item_bytes_min());
        let mut random = SmallRng::seed_from_u64(seed);
        let size = fill_size_bytes + 64 * 1024;
        let letters = (0..size).map(|_| LETTERS[random.random_range(0..LETTERS.len())]).collect();
        ItemWriter { shape, fill_size_bytes, letters }
    }

    /// `{"pk":{"S":"user#000000000007"}}`
    #[inline]
    pub fn write_key(&self, key: Key, body: &mut Vec<u8>) {
        body.push(b'{');
        self.write_key_attributes(key, body);
        body.push(b'}');
    }

    #[inline]
    pub fn write_item(&self, key: Key, random: &mut SmallRng, body: &mut Vec<u8>) {
        body.push(b'{');
        self.write_key_attributes(key, body);
        self.write_rest(key, random, body);
    }

    /// The values of a new item without an index, in the order of [`ItemWriter::COLUMNS`].
    #[inline]
    pub fn write_values(&self, key: Key, random: &mut SmallRng, body: &mut Vec<u8>) {
        body.extend_from_slice(br#"[{"S":""#);
        self.write_partition(key, body);
        body.extend_from_slice(br#""},{"N":"1"#);
        write_number(random.random::<u32>().into(), 10, body);
        body.extend_from_slice(br#""},{"N":"0"},{"BOOL":true},{"S":""#);
        let fill_size_bytes = self.fill_size_bytes.saturating_sub(NEW_KEY_LONGER_BYTES);
        self.write_letters(fill_size_bytes, random, body);
        body.extend_from_slice(br#""}]"#);
    }

    pub const COLUMNS: [&str; 5] = ["pk", "version", "visits", "active", "fill"];

    /// The text of the partition key, without quotes.
    #[inline]
    pub fn write_partition(&self, key: Key, body: &mut Vec<u8>) {
        let number = match self.shape {
            Shape::Plain | Shape::Indexed => key.number(),
            Shape::Sorted => key.number() / PARTITION_ITEMS,
        };
        match (key, self.shape) {
            (Key::New { run, .. }, _) => {
                body.extend_from_slice(b"new#");
                write_number(run, 13, body);
                body.push(b'#');
            }
            (Key::Loaded(_), Shape::Sorted) => body.extend_from_slice(b"list#"),
            (Key::Loaded(_), Shape::Plain | Shape::Indexed) => body.extend_from_slice(b"user#"),
        }
        write_number(number, 12, body);
    }

    #[inline]
    pub fn write_fill(&self, random: &mut SmallRng, body: &mut Vec<u8>) {
        self.write_letters(self.fill_size_bytes, random, body);
    }

    #[inline]
    fn write_letters(&self, size_bytes: usize, random: &mut SmallRng, body: &mut Vec<u8>) {
        let start = random.random_range(0..=self.letters.len() - self.fill_size_bytes);
        body.extend_from_slice(&self.letters[start..start + size_bytes]);
    }

    #[inline]
    fn write_key_attributes(&self, key: Key, body: &mut Vec<u8>) {
        body.extend_from_slice(br#""pk":{"S":""#);
        self.write_partition(key, body);
        if self.shape == Shape::Sorted {
            body.extend_from_slice(br#""},"sk":{"S":"item#"#);
            write_number(key.number() % PARTITION_ITEMS, 6, body);
        }
        body.extend_from_slice(br#""}"#);
    }

    /// All attributes except the key's, and the closing brace.
    #[inline]
    fn write_rest(&self, key: Key, random: &mut SmallRng, body: &mut Vec<u8>) {
        body.extend_from_slice(br#","version":{"N":"1"#);
        // Always the same length, so that all items have the same size.
        write_number(random.random::<u32>().into(), 10, body);
        if self.shape == Shape::Indexed {
            body.extend_from_slice(br#""},"category":{"S":"category#"#);
            write_number(key.number() % CATEGORIES, 3, body);
        }
        body.extend_from_slice(br#""},"visits":{"N":"0"},"active":{"BOOL":true},"fill":{"S":""#);
        // The key of a new item is longer, so its padding is shorter, if there is enough of it.
        let longer = match key {
            Key::Loaded(_) => 0,
            Key::New { .. } => NEW_KEY_LONGER_BYTES,
        };
        self.write_letters(self.fill_size_bytes.saturating_sub(longer), random, body);
        body.extend_from_slice(br#""}}"#);
    }
}

/// Decimal digits, padded with zeros to at least `width`.
#[inline]
pub fn write_number(mut number: u64, width: usize, body: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while number > 0 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    body.extend_from_slice(&digits[at.min(digits.len() - width)..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_width_and_all_their_digits() {
        for (number, width, expected) in
            [(0, 1, "0"), (7, 3, "007"), (1234, 3, "1234"), (u64::MAX, 12, "18446744073709551615")]
        {
            let mut body = Vec::new();
            write_number(number, width, &mut body);
            assert_eq!(body, expected.as_bytes());
        }
    }

    #[test]
    fn items_are_json_of_the_asked_size() {
        for shape in [Shape::Plain, Shape::Sorted, Shape::Indexed] {
            let loaded = Key::Loaded(123_456);
            let new = Key::New { run: 1_700_000_000_000, number: 123_456 };
            let minimum = shape.item_bytes_min();
            for (key, item_bytes) in [
                (loaded, minimum),
                (loaded, 400),
                (loaded, 100_000),
                (new, minimum + 13),
                (new, 400),
            ] {
                let writer = ItemWriter::new(shape, item_bytes, 1);
                let mut body = Vec::new();
                writer.write_item(key, &mut SmallRng::seed_from_u64(2), &mut body);
                let item: serde_json::Value = serde_json::from_slice(&body).unwrap();
                assert_eq!(size_bytes(&item), item_bytes, "{item}");
            }
        }
    }

    /// As DynamoDB documents it: names and strings count their bytes, numbers half of their digits
    /// plus one.
    fn size_bytes(item: &serde_json::Value) -> usize {
        let attributes = item.as_object().unwrap().iter();
        attributes
            .map(|(name, value)| {
                let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
                let size = match (kind.as_str(), value) {
                    ("S", value) => value.as_str().unwrap().len(),
                    ("N", value) => value.as_str().unwrap().len().div_ceil(2) + 1,
                    ("BOOL", _) => 1,
                    other => panic!("no such attribute is written: {other:?}"),
                };
                name.len() + size
            })
            .sum()
    }
}
