//! The types of options that have a vocabulary of their own.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

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
