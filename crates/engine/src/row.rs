//! The form of stored rows, except those of items and stream records.
//!
//! A row with fields is an item in the engine's own item encoding, so it describes itself and a
//! later version can add fields. A row that holds a single number, such as a table's version, is
//! its eight bytes.
//!
//! Reading is strict about known fields and ignores unknown ones: a missing or mistyped field is an
//! error, a field from a later version is skipped.
//!
//! Services above the engine build the fields of their rows ([`crate::service_rows`]) with this, too.

use zenobe_store::{Batch, Key, Store, Value, WriteSet, write_with};
use zenobe_value::{AttributeValue, Attributes, EncodedItem, ItemRef, Number};

use crate::error::{Error, Result};

pub(crate) fn encode_number(number: u64) -> Value {
    Value::copy_from_slice(&number.to_be_bytes())
}

pub(crate) fn decode_number(row: &[u8]) -> Result<u64> {
    row.try_into().map(u64::from_be_bytes).map_err(|_| {
        corrupt(format!("a row of {} bytes where a number of 8 was expected", row.len()))
    })
}

/// Writes one row and replaces any previous one. Durable when it returns.
pub(crate) async fn put(store: &dyn Store, key: Key, row: Value) -> Result<()> {
    let keys = [key];
    let set = WriteSet { guards: &[], keys: &keys };
    let written = write_with(store, set, |_| {
        let mut batch = Batch::new();
        batch.put(keys[0].clone(), row.clone());
        Ok::<_, Error>((batch, ()))
    });
    written.await??;
    Ok(())
}

/// The fields of a row, or of a map inside one.
#[derive(Default)]
pub struct Fields(pub Attributes);

impl Fields {
    /// The fields of a stored row. `what` names the row in an error.
    pub(crate) fn decode(row: &[u8], what: &str) -> Result<Fields> {
        let item = ItemRef::parse(row);
        let item = item.map_err(|error| corrupt(format!("{what} does not decode: {error}")))?;
        Ok(Fields(item.decode()))
    }

    /// The bytes to store.
    pub(crate) fn encode(&self) -> Value {
        EncodedItem::encode(&self.0).as_bytes().clone()
    }

    /// Rejects a row that only a later version understands. `newest` is the last format that this
    /// one does.
    pub(crate) fn check_format(&mut self, what: &str, newest: u64) -> Result<()> {
        match self.take_number("format")? {
            format if (1..=newest).contains(&format) => Ok(()),
            format => {
                Err(corrupt(format!("{what} has format {format}, expected at most {newest}")))
            }
        }
    }

    pub(crate) fn put(&mut self, name: &str, value: AttributeValue) {
        self.0.insert(name.to_owned(), value);
    }

    pub fn text(&mut self, name: &str, text: &str) {
        self.put(name, AttributeValue::S(text.to_owned()));
    }

    pub fn optional_text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    pub fn number(&mut self, name: &str, number: u64) {
        self.put(name, AttributeValue::N(Number::from(number)));
    }

    pub fn optional_number(&mut self, name: &str, number: Option<u64>) {
        if let Some(number) = number {
            self.number(name, number);
        }
    }

    pub fn flag(&mut self, name: &str, flag: bool) {
        self.put(name, AttributeValue::Bool(flag));
    }

    pub fn bytes(&mut self, name: &str, bytes: &[u8]) {
        self.put(name, AttributeValue::B(bytes.to_vec()));
    }

    pub fn map(&mut self, name: &str, map: Attributes) {
        self.put(name, AttributeValue::M(map));
    }

    pub fn texts<'t>(
        &mut self,
        name: &str,
        texts: impl IntoIterator<Item = (&'t String, &'t String)>,
    ) {
        let texts = texts.into_iter();
        let texts = texts.map(|(name, text)| (name.clone(), AttributeValue::S(text.clone())));
        self.map(name, texts.collect());
    }

    pub fn list(&mut self, name: &str, maps: impl Iterator<Item = Attributes>) {
        self.put(name, AttributeValue::L(maps.map(AttributeValue::M).collect()));
    }

    pub(crate) fn take(&mut self, name: &str) -> Result<AttributeValue> {
        self.0.remove(name).ok_or_else(|| corrupt(format!("a row without {name}")))
    }

    pub fn take_text(&mut self, name: &str) -> Result<String> {
        into_text(self.take(name)?)
    }

    pub fn take_optional_text(&mut self, name: &str) -> Result<Option<String>> {
        self.0.remove(name).map(into_text).transpose()
    }

    pub fn take_number(&mut self, name: &str) -> Result<u64> {
        as_number(&self.take(name)?)
    }

    pub(crate) fn take_u32(&mut self, name: &str) -> Result<u32> {
        let number = self.take_number(name)?;
        u32::try_from(number).map_err(|_| corrupt(format!("{name} is {number} in a row")))
    }

    pub fn take_optional_number(&mut self, name: &str) -> Result<Option<u64>> {
        self.0.remove(name).as_ref().map(as_number).transpose()
    }

    pub fn take_flag(&mut self, name: &str) -> Result<bool> {
        match self.take(name)? {
            AttributeValue::Bool(flag) => Ok(flag),
            other => Err(unexpected(name, &other)),
        }
    }

    pub fn take_bytes(&mut self, name: &str) -> Result<Vec<u8>> {
        match self.take(name)? {
            AttributeValue::B(bytes) => Ok(bytes),
            other => Err(unexpected(name, &other)),
        }
    }

    pub fn take_map(&mut self, name: &str) -> Result<Attributes> {
        into_map(self.take(name)?)
    }

    pub fn take_optional_map(&mut self, name: &str) -> Result<Option<Attributes>> {
        self.0.remove(name).map(into_map).transpose()
    }

    pub fn take_list<T>(
        &mut self,
        name: &str,
        decode: impl Fn(Attributes) -> Result<T>,
    ) -> Result<Vec<T>> {
        match self.take(name)? {
            AttributeValue::L(list) => {
                list.into_iter().map(|value| decode(into_map(value)?)).collect()
            }
            other => Err(unexpected(name, &other)),
        }
    }

    /// A map of strings.
    pub fn take_texts<T: FromIterator<(String, String)>>(&mut self, name: &str) -> Result<T> {
        let text = |(name, value)| Ok((name, into_text(value)?));
        self.take_map(name)?.into_iter().map(text).collect()
    }

    /// A list that is never empty: other code relies on its first or last element.
    pub(crate) fn take_filled_list<T>(
        &mut self,
        name: &str,
        decode: impl Fn(Attributes) -> Result<T>,
    ) -> Result<Vec<T>> {
        let list = self.take_list(name, decode)?;
        if list.is_empty() {
            return Err(corrupt(format!("an empty list of {name} in a row")));
        }
        Ok(list)
    }
}

pub(crate) fn into_text(value: AttributeValue) -> Result<String> {
    match value {
        AttributeValue::S(text) => Ok(text),
        other => Err(unexpected("a text", &other)),
    }
}

fn as_number(value: &AttributeValue) -> Result<u64> {
    let number = match value {
        AttributeValue::N(number) => number.to_i64().and_then(|number| u64::try_from(number).ok()),
        _ => None,
    };
    number.ok_or_else(|| unexpected("a whole number", value))
}

fn into_map(value: AttributeValue) -> Result<Attributes> {
    match value {
        AttributeValue::M(map) => Ok(map),
        other => Err(unexpected("a map", &other)),
    }
}

pub(crate) fn unexpected(expected: &str, value: &AttributeValue) -> Error {
    corrupt(format!("{value:?} in place of {expected} in a row"))
}

pub fn corrupt(detail: String) -> Error {
    Error::Corrupt { detail }
}
