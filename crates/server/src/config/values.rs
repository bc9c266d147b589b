//! The values of options that have their own syntax.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use zenobe_database::{Durability, ThroughputMode, Wording};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Plain lines
    Text,
    /// One JSON object per line
    Json,
}

/// Where the access keys are. Secrets don't belong on a command line, which every user of the
/// machine can read: the flag and the configuration file name a file, and only the environment
/// variable holds the keys themselves.
#[derive(Clone, PartialEq, Eq)]
pub enum CredentialsSource {
    File(PathBuf),
    Inline(String),
}

impl FromStr for CredentialsSource {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<CredentialsSource, Self::Err> {
        Ok(CredentialsSource::File(text.into()))
    }
}

impl CredentialsSource {
    /// The source that a text from the environment denotes.
    pub fn from_environment(self) -> CredentialsSource {
        match self {
            CredentialsSource::File(keys) => {
                CredentialsSource::Inline(keys.to_string_lossy().into_owned())
            }
            inline => inline,
        }
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

/// An address to listen on. A port alone means loopback: listening on other interfaces must be
/// explicit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress(pub SocketAddr);

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ListenAddress, String> {
        let port = text.strip_prefix(':').unwrap_or(text);
        if let Ok(port) = port.parse::<u16>() {
            return Ok(ListenAddress(SocketAddr::from(([127, 0, 0, 1], port))));
        }
        let form = "expected ADDRESS:PORT, such as 127.0.0.1:8000, or a port";
        let address = text.rsplit_once(':').filter(|(host, port)| {
            let is_whole = !host.contains(':') || host.starts_with('[') && host.ends_with(']');
            !host.is_empty() && is_whole && port.parse::<u16>().is_ok()
        });
        if address.is_none() {
            return Err(form.to_owned());
        }
        let mut addresses = text.to_socket_addrs().map_err(|error| error.to_string())?;
        addresses.next().map(ListenAddress).ok_or_else(|| "the name has no address".to_owned())
    }
}

/// A count of at least one.
pub fn at_least_one(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("expected a whole number from 1 to {}", u32::MAX)),
    }
}

const NODE_NAME_LENGTH_MAX: usize = 100;

/// A node's name, as it stands in lists and logs.
pub fn node_name(text: &str) -> Result<String, String> {
    let length = text.chars().count();
    match (1..=NODE_NAME_LENGTH_MAX).contains(&length) && !text.chars().any(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err(format!("expected 1 to {NODE_NAME_LENGTH_MAX} printable characters")),
    }
}

const REGION_LENGTH_MAX: usize = 64;
const ACCOUNT_LENGTH: usize = 12;

/// A region's name, which is part of every ARN.
pub fn region(text: &str) -> Result<String, String> {
    let is_in_region = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    match (1..=REGION_LENGTH_MAX).contains(&text.len()) && text.bytes().all(is_in_region) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "expected 1 to {REGION_LENGTH_MAX} letters, digits, `-` and `_`, such as us-east-1"
        )),
    }
}

/// An account's number, which is part of every ARN.
pub fn account(text: &str) -> Result<String, String> {
    match text.len() == ACCOUNT_LENGTH && text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(text.to_owned()),
        false => Err(format!("expected {ACCOUNT_LENGTH} digits, such as 123456789012")),
    }
}

/// An element of a list, with optional white space around it.
pub fn trimmed<T: FromStr>(text: &str) -> Result<T, T::Err> {
    text.trim().parse()
}

pub fn durability_parser() -> impl TypedValueParser<Value = Durability> {
    let values = [
        PossibleValue::new("sync").help("It survives power loss"),
        PossibleValue::new("os").help("It survives a crash of the process"),
    ];
    PossibleValuesParser::new(values).map(|word| match word.as_str() {
        "os" => Durability::Os,
        _ => Durability::Sync,
    })
}

pub fn throughput_parser() -> impl TypedValueParser<Value = ThroughputMode> {
    let values = [
        PossibleValue::new("off").help("Nothing is counted"),
        PossibleValue::new("observe").help("Requests that AWS would throttle are counted"),
        PossibleValue::new("enforce").help("Requests that AWS would throttle are refused"),
    ];
    PossibleValuesParser::new(values).map(|word| word.parse().unwrap_or_default())
}

pub fn wording_parser() -> impl TypedValueParser<Value = Wording> {
    let values = [
        PossibleValue::new("classic").help("The long-standing texts"),
        PossibleValue::new("newer").help("The texts that AWS has been rolling out since 2026"),
    ];
    PossibleValuesParser::new(values).map(|word| match word.as_str() {
        "newer" => Wording::Newer,
        _ => Wording::Classic,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_listens_on_loopback() {
        let check = |text: &str, expected: &str| {
            let address = text.parse::<ListenAddress>().map(|ListenAddress(it)| it.to_string());
            assert_eq!(address.as_deref(), Ok(expected), "{text}");
        };
        check("8000", "127.0.0.1:8000");
        check(":8002", "127.0.0.1:8002");
        check("0.0.0.0:80", "0.0.0.0:80");
        check("[::1]:8000", "[::1]:8000");
    }

    #[test]
    fn errors_describe_the_form() {
        let form = "expected ADDRESS:PORT, such as 127.0.0.1:8000, or a port";
        for text in ["", "nowhere", "127.0.0.1", "127.0.0.1:", ":", "::1:8000", "1:2:3", "70000"] {
            assert_eq!(text.parse::<ListenAddress>(), Err(form.to_owned()), "{text}");
        }
        let unknown = "no-such-host.invalid:1".parse::<ListenAddress>().unwrap_err();
        assert_ne!(unknown, form);
    }

    #[test]
    fn accounts_and_regions_have_their_form() {
        assert!(region("us-east-1").is_ok() && region("local_1").is_ok());
        for text in ["", "us east", "us:east", "é", &"r".repeat(65)] {
            assert!(region(text).is_err(), "{text}");
        }
        assert!(account("123456789012").is_ok());
        for text in ["", "1", "12345678901a", "1234567890123"] {
            assert!(account(text).is_err(), "{text}");
        }
    }
}
