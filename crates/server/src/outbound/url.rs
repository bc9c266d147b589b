//! URLs of plain HTTP endpoints.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Host and port as given.
    authority: String,
    host: String,
    port: u16,
    /// Includes the query, if any.
    path: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("`{0}` is not a URL such as http://127.0.0.1:9000/path")]
    Malformed(String),
    #[error(
        "`{0}` needs TLS, which is not available here: use http:// and a proxy on this machine"
    )]
    Tls(String),
}

impl Url {
    pub fn authority(&self) -> &str {
        &self.authority
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn path(&self) -> &str {
        &self.path
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Url, UrlError> {
        let malformed = || UrlError::Malformed(text.to_owned());
        let uri: hyper::Uri = text.parse().map_err(|_| malformed())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(UrlError::Tls(text.to_owned())),
            _ => return Err(malformed()),
        }
        let authority = uri.authority().ok_or_else(malformed)?;
        let is_bare = !authority.as_str().contains('@');
        // An IPv6 address is written in brackets, but connecting takes it without them.
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || !is_bare {
            return Err(malformed());
        }
        Ok(Url {
            authority: authority.to_string(),
            host: host.to_owned(),
            port: authority.port_u16().unwrap_or(80),
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "http://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let check = |text: &str, host: &str, port: u16, path: &str| {
            let url: Url = text.parse().unwrap();
            assert_eq!((url.host(), url.port(), url.path()), (host, port, path), "{text}");
        };
        check("http://localhost:9000/2015-03-31/f?x=1", "localhost", 9000, "/2015-03-31/f?x=1");
        check("http://example.org", "example.org", 80, "/");
        check("http://[::1]:8000/", "::1", 8000, "/");
    }

    #[test]
    fn urls_that_cannot_be_called_are_rejected() {
        let refusal = |text: &str| text.parse::<Url>().unwrap_err();
        for text in ["", "localhost:9000", "/path", "ftp://x/", "http://", "http://u:p@x/"] {
            assert_eq!(refusal(text), UrlError::Malformed(text.into()), "{text}");
        }
        assert!(matches!(refusal("https://example.org/"), UrlError::Tls(_)));
    }
}
