//! The types of options that have a vocabulary of their own.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use zenobe_api::Wording;

use crate::http::sites::{AllowedHost, CorsOrigin};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// An acknowledged write survives power loss.
    Sync,
    /// An acknowledged write survives a crash of the process.
    Os,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// Where the access keys are. Secrets don't belong on a command line, which every user of the
/// machine can read: flag and file name a file, only the environment variable holds the keys themselves.
#[derive(Clone, PartialEq, Eq)]
pub enum CredentialsSource {
    File(PathBuf),
    Inline(String),
}

/// A switch. `FromStr` for `bool` itself takes fewer words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch(pub bool);

/// Whether requests of unknown callers are accepted beyond loopback.
pub type AcceptAny = Switch;

/// What an option can hold, read from a text of the environment or of a file.
pub trait OptionValue: Sized {
    /// Whether the option may be given several times.
    const IS_LIST: bool = false;

    fn parse_text(text: &str) -> Result<Self, String>;
}

macro_rules! option_values {
    ($($type:ty),* $(,)?) => {$(
        impl OptionValue for $type {
            fn parse_text(text: &str) -> Result<$type, String> {
                text.parse().map_err(|error| not_valid(text, &error))
            }
        }
    )*};
}

option_values!(
    String,
    PathBuf,
    u32,
    Switch,
    Durability,
    LogFormat,
    CredentialsSource,
    AllowedHost,
    CorsOrigin
);

impl OptionValue for Wording {
    fn parse_text(text: &str) -> Result<Wording, String> {
        parse_wording(text).map_err(|error| not_valid(text, &error))
    }
}

/// Separated by commas.
impl<T: OptionValue> OptionValue for Vec<T> {
    const IS_LIST: bool = true;

    fn parse_text(text: &str) -> Result<Vec<T>, String> {
        text.split(',').map(|element| T::parse_text(element.trim())).collect()
    }
}

fn not_valid(text: &str, error: &dyn fmt::Display) -> String {
    format!("`{text}` is not valid: {error}")
}

/// The words for a type that belongs to another crate.
pub fn parse_wording(text: &str) -> Result<Wording, UnknownWord> {
    match text {
        "classic" => Ok(Wording::Classic),
        "newer" => Ok(Wording::Newer),
        _ => Err(UnknownWord { expected: "classic or newer" }),
    }
}

/// A text that names none of the values of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    expected: &'static str,
}

impl std::error::Error for UnknownWord {}

impl fmt::Display for UnknownWord {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "expected {}", self.expected)
    }
}

impl FromStr for Durability {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Durability, UnknownWord> {
        match text {
            "sync" => Ok(Durability::Sync),
            "os" => Ok(Durability::Os),
            _ => Err(UnknownWord { expected: "sync or os" }),
        }
    }
}

impl FromStr for LogFormat {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<LogFormat, UnknownWord> {
        match text {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err(UnknownWord { expected: "text or json" }),
        }
    }
}

impl FromStr for Switch {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Switch, UnknownWord> {
        match text {
            "true" | "1" | "yes" | "on" => Ok(Switch(true)),
            "false" | "0" | "no" | "off" => Ok(Switch(false)),
            _ => Err(UnknownWord { expected: "true or false" }),
        }
    }
}

impl FromStr for CredentialsSource {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<CredentialsSource, Self::Err> {
        Ok(CredentialsSource::File(text.into()))
    }
}

impl fmt::Debug for CredentialsSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CredentialsSource::File(path) => out.debug_tuple("File").field(path).finish(),
            CredentialsSource::Inline(_) => out.write_str("Inline(..)"),
        }
    }
}
