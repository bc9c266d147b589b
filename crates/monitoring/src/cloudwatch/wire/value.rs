//! The neutral tree between protocols and operations.

use std::borrow::Cow;

pub type Structure = Vec<(Cow<'static, str>, Value)>;

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    /// A scalar of a form, which does not say its type.
    Form(String),
    /// Milliseconds since the Unix epoch.
    Timestamp(i64),
    List(Vec<Value>),
    /// Members with fixed names. Every map of a request is one.
    Structure(Structure),
    /// A map with free keys, which XML renders differently.
    Dictionary(Vec<(String, Value)>),
}

impl Value {
    pub fn texts<'t>(texts: impl IntoIterator<Item = &'t String>) -> Value {
        Value::List(texts.into_iter().map(|text| Value::Text(text.clone())).collect())
    }

    pub fn structures(structures: impl IntoIterator<Item = Structure>) -> Value {
        Value::List(structures.into_iter().map(Value::Structure).collect())
    }

    /// A time of the engine's clock.
    pub fn time(at_ms: u64) -> Value {
        Value::Timestamp(i64::try_from(at_ms).unwrap_or(i64::MAX))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}
