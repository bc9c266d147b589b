//! Small JSON documents with a checksum, and the members that they must have.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::{BackupError, Result};

/// A line with the kind, the version and the SHA-256 of the rest, and then the document.
pub fn seal(kind: &str, version: u32, document: &Value) -> Vec<u8> {
    let text = format!("{document:#}\n");
    let digest = hex::encode(Sha256::digest(text.as_bytes()));
    format!("zenobe-{kind} {version} sha256 {digest}\n{text}").into_bytes()
}

/// The document in sealed bytes. `object` is where they were found.
pub fn unseal(kind: &str, version: u32, object: &str, bytes: &[u8]) -> Result<Value> {
    let damaged = |problem: &str| BackupError::damaged(object, problem);
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (line, rest) = bytes.split_at(end.ok_or_else(|| damaged("it has no first line"))?);
    let line = std::str::from_utf8(line).map_err(|_| damaged("its first line is not text"))?;
    let rest = &rest[1..];
    let words: Vec<&str> = line.split(' ').collect();
    let [name, found, "sha256", digest] = words[..] else {
        return Err(damaged("its first line does not say what it is"));
    };
    if name != format!("zenobe-{kind}") {
        return Err(damaged("it is something else"));
    }
    if found != version.to_string() {
        let problem = format!("it has version {found}; this program reads version {version}");
        return Err(damaged(&problem));
    }
    if digest != hex::encode(Sha256::digest(rest)) {
        return Err(damaged("its SHA-256 is another than it says; it was cut off or altered"));
    }
    serde_json::from_slice(rest).map_err(|error| damaged(&error.to_string()))
}

/// Reads members of a document, and names the one that is missing.
pub struct Members<'a> {
    pub object: &'a str,
    pub value: &'a Value,
}

impl<'a> Members<'a> {
    fn missing(&self, name: &str) -> BackupError {
        BackupError::damaged(
            self.object,
            format!("its member {name} is missing or not what it should be"),
        )
    }

    pub fn text(&self, name: &str) -> Result<String> {
        self.optional_text(name).ok_or_else(|| self.missing(name))
    }

    pub fn optional_text(&self, name: &str) -> Option<String> {
        self.value[name].as_str().map(str::to_owned)
    }

    pub fn number(&self, name: &str) -> Result<u64> {
        self.value[name].as_u64().ok_or_else(|| self.missing(name))
    }

    pub fn bytes<const N: usize>(&self, name: &str) -> Result<[u8; N]> {
        self.key(name)?.try_into().map_err(|_| self.missing(name))
    }

    pub fn key(&self, name: &str) -> Result<Vec<u8>> {
        let bytes = self.value[name].as_str().and_then(|digits| hex::decode(digits).ok());
        bytes.ok_or_else(|| self.missing(name))
    }

    pub fn list(&self, name: &str) -> Result<Vec<Members<'a>>> {
        let list = self.value[name].as_array().ok_or_else(|| self.missing(name))?;
        Ok(list.iter().map(|value| Members { object: self.object, value }).collect())
    }
}
