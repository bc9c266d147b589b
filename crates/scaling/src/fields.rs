//! The fields of this crate's rows. Reading is strict about known fields and ignores unknown ones,
//! as with every row of the engine.

use zenobe_engine::error::{Error, Result};
use zenobe_value::{AttributeValue, Attributes, Number};

/// The fields of a row, or of a map inside one.
#[derive(Default)]
pub(crate) struct Fields(pub(crate) Attributes);

impl Fields {
    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.0.insert(name.to_owned(), AttributeValue::S(text.to_owned()));
    }

    pub(crate) fn optional_text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    pub(crate) fn number(&mut self, name: &str, number: u64) {
        self.0.insert(name.to_owned(), AttributeValue::N(Number::from(number)));
    }

    pub(crate) fn optional_number(&mut self, name: &str, number: Option<u64>) {
        if let Some(number) = number {
            self.number(name, number);
        }
    }

    pub(crate) fn flag(&mut self, name: &str, flag: bool) {
        self.0.insert(name.to_owned(), AttributeValue::Bool(flag));
    }

    pub(crate) fn map(&mut self, name: &str, map: Attributes) {
        self.0.insert(name.to_owned(), AttributeValue::M(map));
    }

    pub(crate) fn list(&mut self, name: &str, maps: impl Iterator<Item = Attributes>) {
        let list = maps.map(AttributeValue::M).collect();
        self.0.insert(name.to_owned(), AttributeValue::L(list));
    }

    pub(crate) fn take_text(&mut self, name: &str) -> Result<String> {
        self.take_optional_text(name)?.ok_or_else(|| missing(name))
    }

    pub(crate) fn take_optional_text(&mut self, name: &str) -> Result<Option<String>> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(AttributeValue::S(text)) => Ok(Some(text)),
            Some(other) => Err(unexpected(name, &other)),
        }
    }

    pub(crate) fn take_number(&mut self, name: &str) -> Result<u64> {
        self.take_optional_number(name)?.ok_or_else(|| missing(name))
    }

    pub(crate) fn take_optional_number(&mut self, name: &str) -> Result<Option<u64>> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        let number = match &value {
            AttributeValue::N(number) => number.to_i64().and_then(|number| number.try_into().ok()),
            _ => None,
        };
        number.map(Some).ok_or_else(|| unexpected(name, &value))
    }

    pub(crate) fn take_flag(&mut self, name: &str) -> Result<bool> {
        match self.0.remove(name) {
            Some(AttributeValue::Bool(flag)) => Ok(flag),
            Some(other) => Err(unexpected(name, &other)),
            None => Err(missing(name)),
        }
    }

    pub(crate) fn take_optional_map(&mut self, name: &str) -> Result<Option<Fields>> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(AttributeValue::M(map)) => Ok(Some(Fields(map))),
            Some(other) => Err(unexpected(name, &other)),
        }
    }

    pub(crate) fn take_map(&mut self, name: &str) -> Result<Fields> {
        self.take_optional_map(name)?.ok_or_else(|| missing(name))
    }

    pub(crate) fn take_list<T>(
        &mut self,
        name: &str,
        decode: impl Fn(Fields) -> Result<T>,
    ) -> Result<Vec<T>> {
        let list = match self.0.remove(name) {
            Some(AttributeValue::L(list)) => list,
            Some(other) => return Err(unexpected(name, &other)),
            None => return Err(missing(name)),
        };
        let element = |value| match value {
            AttributeValue::M(map) => decode(Fields(map)),
            other => Err(unexpected(name, &other)),
        };
        list.into_iter().map(element).collect()
    }

    /// Everything that is left, as texts by name.
    pub(crate) fn into_texts<T: FromIterator<(String, String)>>(mut self) -> Result<T> {
        let names: Vec<String> = self.0.keys().cloned().collect();
        let text = |name: String| self.take_text(&name).map(|text| (name, text));
        names.into_iter().map(text).collect()
    }
}

pub(crate) fn corrupt(detail: String) -> Error {
    Error::Corrupt { detail }
}

fn missing(name: &str) -> Error {
    corrupt(format!("a row of auto scaling without {name}"))
}

fn unexpected(name: &str, value: &AttributeValue) -> Error {
    corrupt(format!("{value:?} as {name} in a row of auto scaling"))
}
