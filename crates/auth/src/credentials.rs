//! The access keys that a server knows.

use std::collections::BTreeMap;
use std::fmt;

/// One access key. `Debug` leaves the secret out, so no log ever holds one.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub access_key: String,
    pub secret_key: String,
    /// Set for temporary credentials; requests must then carry it.
    pub session_token: Option<String>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Credential").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    by_access_key: BTreeMap<String, Credential>,
}

/// Names a wrong entry by its position, because its text holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialsError {
    Shape { position: usize },
    Duplicate { access_key: String },
    Empty,
}

impl Credentials {
    /// Reads `id:secret` or `id:secret:session-token` entries, separated by commas or line breaks.
    /// Skips blank lines and lines that start with `#`.
    pub fn parse(text: &str) -> Result<Credentials, CredentialsError> {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let entries = lines.flat_map(|line| line.split(',')).map(str::trim);
        let entries = entries.filter(|entry| !entry.is_empty());
        let mut by_access_key = BTreeMap::new();
        for (index, entry) in entries.enumerate() {
            let credential =
                parse_entry(entry).ok_or(CredentialsError::Shape { position: index + 1 })?;
            let access_key = credential.access_key.clone();
            if by_access_key.insert(access_key.clone(), credential).is_some() {
                return Err(CredentialsError::Duplicate { access_key });
            }
        }
        match by_access_key.is_empty() {
            true => Err(CredentialsError::Empty),
            false => Ok(Credentials { by_access_key }),
        }
    }

    pub fn get(&self, access_key: &str) -> Option<&Credential> {
        self.by_access_key.get(access_key)
    }

    pub fn len(&self) -> usize {
        self.by_access_key.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_access_key.is_empty()
    }
}

fn parse_entry(entry: &str) -> Option<Credential> {
    let mut parts = entry.splitn(3, ':').map(str::to_owned);
    let (access_key, secret_key) = (parts.next()?, parts.next()?);
    let session_token = parts.next();
    let complete = !access_key.is_empty()
        && !secret_key.is_empty()
        && session_token.as_ref().is_none_or(|token| !token.is_empty());
    complete.then_some(Credential { access_key, secret_key, session_token })
}

impl std::error::Error for CredentialsError {}

impl fmt::Display for CredentialsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CredentialsError::Shape { position } => {
                write!(out, "entry {position} of the credentials is not id:secret")
            }
            CredentialsError::Duplicate { access_key } => {
                write!(out, "the access key {access_key} is given twice")
            }
            CredentialsError::Empty => out.write_str("no credentials are given"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_separated_by_commas_or_lines() {
        let credentials = Credentials::parse("# people\na:1, b:2/+=\n\nc:3:token:x\n").unwrap();
        assert_eq!(credentials.len(), 3);
        assert_eq!(credentials.get("b").unwrap().secret_key, "2/+=");
        assert_eq!(credentials.get("c").unwrap().session_token.as_deref(), Some("token:x"));
    }

    #[test]
    fn errors_do_not_show_the_secret() {
        let fault = |text: &str| Credentials::parse(text).unwrap_err();
        assert_eq!(fault("a:1,b"), CredentialsError::Shape { position: 2 });
        assert_eq!(fault("a:"), CredentialsError::Shape { position: 1 });
        assert_eq!(fault("a:1:"), CredentialsError::Shape { position: 1 });
        assert_eq!(fault("a:1\na:2"), CredentialsError::Duplicate { access_key: "a".into() });
        assert_eq!(fault("# none"), CredentialsError::Empty);
        let shown = format!("{:?}", Credentials::parse("id:hidden").unwrap());
        assert!(!shown.contains("hidden"), "{shown}");
    }
}
