//! Reading requests: members by name and type, with the texts that AWS's parser has for wrong types.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::{Exception, Result, ScalingError};

/// The members of a structure. Unknown ones are ignored, and null means "not given".
#[derive(Debug, Clone, Copy)]
pub(crate) struct Members<'a>(&'a Map<String, Value>);

/// A body without bytes is an empty structure.
pub(crate) fn parse(body: &[u8]) -> Result<Value> {
    if body.is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    serde_json::from_slice(body).map_err(|_| serialization("the body is not valid JSON"))
}

impl<'a> Members<'a> {
    pub(crate) fn of(value: &'a Value) -> Result<Members<'a>> {
        match value {
            Value::Object(members) => Ok(Members(members)),
            other => Err(unexpected(other, "a structure")),
        }
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>> {
        self.get(name).map(as_text).transpose()
    }

    pub(crate) fn integer(&self, name: &str) -> Result<Option<i32>> {
        let integer = |value: &Value| {
            let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
            number.ok_or_else(|| unexpected(value, "an Integer"))
        };
        self.get(name).map(integer).transpose()
    }

    pub(crate) fn decimal(&self, name: &str) -> Result<Option<f64>> {
        let decimal = |value: &Value| value.as_f64().ok_or_else(|| unexpected(value, "a Double"));
        self.get(name).map(decimal).transpose()
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>> {
        let flag = |value: &Value| value.as_bool().ok_or_else(|| unexpected(value, "a Boolean"));
        self.get(name).map(flag).transpose()
    }

    /// A time in seconds since the epoch, as milliseconds.
    pub(crate) fn timestamp(&self, name: &str) -> Result<Option<u64>> {
        let timestamp = |value: &Value| {
            let seconds = value.as_f64().filter(|seconds| (0.0..MAX_SECONDS).contains(seconds));
            let seconds = seconds.ok_or_else(|| unexpected(value, "a Date"))?;
            Ok((seconds * 1_000.0).round() as u64)
        };
        self.get(name).map(timestamp).transpose()
    }

    pub(crate) fn members(&self, name: &str) -> Result<Option<Members<'a>>> {
        self.get(name).map(Members::of).transpose()
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<&'a str>>> {
        let texts = |list: Vec<&'a Value>| list.into_iter().map(as_text).collect();
        self.list(name)?.map(texts).transpose()
    }

    pub(crate) fn structures(&self, name: &str) -> Result<Option<Vec<Members<'a>>>> {
        let structures = |list: Vec<&'a Value>| list.into_iter().map(Members::of).collect();
        self.list(name)?.map(structures).transpose()
    }

    pub(crate) fn text_map(&self, name: &str) -> Result<Option<BTreeMap<String, String>>> {
        let Some(members) = self.members(name)? else { return Ok(None) };
        let entries = members.0.iter();
        let entries = entries.map(|(key, value)| Ok((key.clone(), as_text(value)?.to_owned())));
        entries.collect::<Result<_>>().map(Some)
    }

    fn list(&self, name: &str) -> Result<Option<Vec<&'a Value>>> {
        let list = |value: &'a Value| match value {
            Value::Array(list) => Ok(list.iter().collect()),
            other => Err(unexpected(other, "a list")),
        };
        self.get(name).map(list).transpose()
    }
}

/// The end of the year 9999.
const MAX_SECONDS: f64 = 253_402_300_800.0;

fn as_text(value: &Value) -> Result<&str> {
    value.as_str().ok_or_else(|| unexpected(value, "a String"))
}

fn unexpected(value: &Value, target: &str) -> ScalingError {
    let token = match value {
        Value::Null => "NULL_VALUE",
        Value::Bool(true) => "TRUE_VALUE",
        Value::Bool(false) => "FALSE_VALUE",
        Value::Number(number) if number.is_f64() => "DECIMAL_VALUE",
        Value::Number(_) => "NUMBER_VALUE",
        Value::String(_) => "STRING_VALUE",
        Value::Array(_) => "START_ARRAY",
        Value::Object(_) => "START_OBJECT",
    };
    serialization(&format!("{token} can not be converted to {target}"))
}

fn serialization(message: &str) -> ScalingError {
    ScalingError::new(Exception::Serialization, message)
}

/// A time in milliseconds as AWS writes it: seconds with a fraction.
pub(crate) fn seconds(at_ms: u64) -> Value {
    (at_ms as f64 / 1_000.0).into()
}
