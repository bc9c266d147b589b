//! The endpoint to call, and the credentials to call it with.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use zenobe_auth::Credential;

use crate::{LoadError, Result};

#[derive(Debug, Clone)]
pub struct Target {
    pub(crate) secure: bool,
    /// Without the brackets of an IPv6 address.
    pub(crate) host: String,
    port: u16,
    /// As in the URL, for the Host header.
    pub(crate) authority: String,
    pub(crate) region: String,
    pub(crate) credential: Option<Credential>,
    pub(crate) certificates: Option<PathBuf>,
    /// The time that reads see tables as of.
    pub(crate) as_of: Option<String>,
}

impl Target {
    /// Reads `http://host:port` or `https://host`. Without a credential, requests carry a signature
    /// that no server can verify; only an endpoint on this machine may be called this way.
    pub fn new(endpoint: &str, region: &str, credential: Option<Credential>) -> Result<Target> {
        let mut target = parse(endpoint)
            .map_err(|fault| LoadError::Endpoint { url: endpoint.to_owned(), fault })?;
        if !is_plain(region) || region.is_empty() {
            return Err(LoadError::Header { what: "region" });
        }
        if let Some(credential) = &credential {
            let token = credential.session_token.as_deref().unwrap_or_default();
            if !is_plain(&credential.access_key) || !is_plain(token) {
                return Err(LoadError::Header { what: "access key or session token" });
            }
        } else if !target.is_loopback() {
            return Err(LoadError::NoCredentials { endpoint: target.to_string() });
        }
        target.region = region.to_owned();
        target.credential = credential;
        Ok(target)
    }

    /// Lets reads see tables as of a time, as Zenobe understands it.
    pub fn with_as_of(self, as_of: &str) -> Result<Target> {
        match is_plain(as_of) && !as_of.is_empty() {
            true => Ok(Target { as_of: Some(as_of.to_owned()), ..self }),
            false => Err(LoadError::Header { what: "time" }),
        }
    }

    /// The time to read as of, for an operation that reads.
    pub(crate) fn as_of(&self, operation: &str) -> Option<&str> {
        let reads = ["BatchGetItem", "ExecuteStatement", "GetItem", "Query", "Scan"];
        self.as_of.as_deref().filter(|_| reads.contains(&operation))
    }

    /// Also trusts the certificates in a PEM file, for example those of a company's proxy.
    pub fn with_certificates(self, file: PathBuf) -> Target {
        Target { certificates: Some(file), ..self }
    }

    /// Like [`Target::new`], with the credential from `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`
    /// and `AWS_SESSION_TOKEN` if the first two are set, and the certificates of `AWS_CA_BUNDLE`.
    pub fn from_environment(endpoint: &str, region: &str) -> Result<Target> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let keys = variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY"));
        let credential = keys.map(|(access_key, secret_key)| Credential {
            access_key,
            secret_key,
            session_token: variable("AWS_SESSION_TOKEN"),
        });
        Target::with_credential(endpoint, region, credential)
    }

    /// Like [`Target::new`], with the certificates of `AWS_CA_BUNDLE`.
    pub fn with_credential(
        endpoint: &str,
        region: &str,
        credential: Option<Credential>,
    ) -> Result<Target> {
        let target = Target::new(endpoint, region, credential)?;
        let certificates = std::env::var("AWS_CA_BUNDLE").ok().filter(|file| !file.is_empty());
        Ok(match certificates {
            Some(file) => target.with_certificates(file.into()),
            None => target,
        })
    }

    pub fn region(&self) -> &str {
        &self.region
    }

    pub fn is_signed(&self) -> bool {
        self.credential.is_some()
    }

    pub fn is_loopback(&self) -> bool {
        let is_loopback = |address: IpAddr| address.is_loopback();
        self.host == "localhost" || self.host.parse().is_ok_and(is_loopback)
    }

    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>> {
        let failed = |error| LoadError::Resolve { host: self.host.clone(), error };
        let found = (self.host.as_str(), self.port).to_socket_addrs().map_err(failed)?;
        let addresses: Vec<SocketAddr> = found.collect();
        match addresses.is_empty() {
            true => Err(failed(std::io::Error::from(std::io::ErrorKind::NotFound))),
            false => Ok(addresses),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "http{}://{}", if self.secure { "s" } else { "" }, self.authority)
    }
}

fn parse(endpoint: &str) -> std::result::Result<Target, &'static str> {
    let (scheme, rest) =
        endpoint.split_once("://").ok_or("it must begin with http:// or https://")?;
    let secure = match scheme.to_ascii_lowercase().as_str() {
        "http" => false,
        "https" => true,
        _ => return Err("it must begin with http:// or https://"),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#']) {
        return Err("DynamoDB has no paths, so it must end after the port");
    }
    if authority.contains('@') {
        return Err("it must not hold a user name");
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or("the bracket is not closed")?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(digits) => digits.parse().map_err(|_| "the port is not a number below 65536")?,
        None if port.is_empty() => 80 + 363 * u16::from(secure),
        None => return Err("after the host only a port may follow"),
    };
    if host.is_empty() || !is_plain(host) {
        return Err("the host is missing or has impossible characters");
    }
    Ok(Target {
        secure,
        host: host.to_owned(),
        port,
        authority: authority.to_owned(),
        region: String::new(),
        credential: None,
        certificates: None,
        as_of: None,
    })
}

/// Whether the text is valid in a header's value.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(endpoint: &str) -> std::result::Result<(bool, String, u16), &'static str> {
        parse(endpoint).map(|target| (target.secure, target.host, target.port))
    }

    #[test]
    fn endpoints_are_parsed_or_rejected_with_a_reason() {
        assert_eq!(read("http://127.0.0.1:8000"), Ok((false, "127.0.0.1".into(), 8000)));
        assert_eq!(read("http://[::1]:8000/"), Ok((false, "::1".into(), 8000)));
        assert_eq!(read("HTTPS://db.example"), Ok((true, "db.example".into(), 443)));
        assert_eq!(read("http://db.example"), Ok((false, "db.example".into(), 80)));
        for (endpoint, part) in [
            ("127.0.0.1:8000", "begin with"),
            ("ftp://host", "begin with"),
            ("http://", "host is missing"),
            ("http://a b", "impossible"),
            ("http://host:99999", "port"),
            ("http://host:", "port"),
            ("http://[::1", "bracket"),
            ("http://[::1]8000", "only a port"),
            ("http://host/path", "no paths"),
            ("http://me@host", "user name"),
        ] {
            let fault = read(endpoint).expect_err(endpoint);
            assert!(fault.contains(part), "{endpoint}: {fault}");
        }
    }

    #[test]
    fn only_loopback_goes_unsigned() {
        for endpoint in ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"] {
            assert!(!Target::new(endpoint, "eu-west-1", None).unwrap().is_signed());
        }
        let refused = Target::new("https://dynamodb.eu-west-1.amazonaws.com", "eu-west-1", None);
        assert!(matches!(refused, Err(LoadError::NoCredentials { .. })));
    }
}
