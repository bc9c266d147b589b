//! Which host names and which web pages the server accepts.
//!
//! A page in a browser can reach servers on its visitor's machine and network. Two checks keep
//! foreign pages out. First, a request with an `Origin` passes only if that origin is allowed or is
//! the server's own. Second, the `Host` must be a name of the server that no foreign page can have:
//! a page whose own name resolves to the server (DNS rebinding) has no foreign origin, but it
//! cannot change that name.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use hyper::header::{HOST, HeaderValue, ORIGIN};
use hyper::http::request;

use crate::logging::shortened;

/// Which requests pass. The default accepts any name and no foreign page.
#[derive(Debug, Clone, Default)]
pub struct CrossSitePolicy {
    hosts: KnownHosts,
    allowed_hosts: Vec<AllowedHost>,
    origins: Vec<CorsOrigin>,
}

/// The host names that pass without being configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KnownHosts {
    /// The names of loopback addresses.
    Loopback,
    /// Addresses, and names that cannot be in the public DNS.
    Private,
    /// Every name, unless names are configured: those then replace this default.
    #[default]
    AnyUnlessConfigured,
}

/// A configured host: a name, a name with everything below it (`*.example.org`), or every host (`*`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedHost {
    Any,
    Name(String),
    /// Includes the leading dot.
    Below(String),
}

/// A configured origin of web pages, or every origin (`*`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorsOrigin {
    Any,
    Origin(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CrossSiteRefusal {
    #[error(
        "the host name `{host}` is not one of this server's: call it by {known}, or start it with \
         --allowed-host {host}"
    )]
    Host { host: String, known: &'static str },
    #[error(
        "web pages from `{origin}` may not call this server: start it with --cors-origin {origin} \
         to allow them"
    )]
    Origin { origin: String },
}

impl CrossSitePolicy {
    pub fn new(
        hosts: KnownHosts,
        allowed_hosts: Vec<AllowedHost>,
        origins: Vec<CorsOrigin>,
    ) -> CrossSitePolicy {
        CrossSitePolicy { hosts, allowed_hosts, origins }
    }

    pub fn check(&self, parts: &request::Parts) -> Result<(), CrossSiteRefusal> {
        self.check_host(parts)?;
        match parts.headers.get(ORIGIN) {
            Some(origin) if self.granted(parts).is_none() => {
                let origin = shortened(&String::from_utf8_lossy(origin.as_bytes())).into_owned();
                Err(CrossSiteRefusal::Origin { origin })
            }
            _ => Ok(()),
        }
    }

    /// The value of `Access-Control-Allow-Origin` for the page that sent the request, if it may
    /// read the response.
    pub fn granted(&self, parts: &request::Parts) -> Option<HeaderValue> {
        let origin = parts.headers.get(ORIGIN)?;
        if self.origins.contains(&CorsOrigin::Any) {
            return Some(HeaderValue::from_static("*"));
        }
        let text = origin.to_str().ok()?;
        let is_listed = self.origins.iter().any(|allowed| match allowed {
            CorsOrigin::Any => true,
            CorsOrigin::Origin(allowed) => allowed.eq_ignore_ascii_case(text),
        });
        (is_listed || is_own(text, parts)).then(|| origin.clone())
    }

    fn check_host(&self, parts: &request::Parts) -> Result<(), CrossSiteRefusal> {
        if self.hosts == KnownHosts::AnyUnlessConfigured && self.allowed_hosts.is_empty() {
            return Ok(());
        }
        // The request line may also contain a name. A request without any name does not come from a
        // browser.
        let named = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
        let headers = parts.headers.get_all(HOST).iter().map(HeaderValue::as_bytes);
        for host in named.into_iter().chain(headers).filter(|host| !is_usual(host)) {
            let host = host_name(&String::from_utf8_lossy(host));
            if !self.answers(&host) {
                let (host, known) = (shortened(&host).into_owned(), self.hosts.description());
                return Err(CrossSiteRefusal::Host { host, known });
            }
        }
        Ok(())
    }

    fn answers(&self, host: &str) -> bool {
        let is_known = match self.hosts {
            KnownHosts::Loopback => is_loopback(host),
            KnownHosts::Private => is_loopback(host) || is_private(host),
            KnownHosts::AnyUnlessConfigured => is_loopback(host),
        };
        is_known || self.allowed_hosts.iter().any(|allowed| allowed.covers(host))
    }
}

impl KnownHosts {
    fn description(self) -> &'static str {
        match self {
            KnownHosts::Loopback => "localhost or a loopback address",
            KnownHosts::Private => "an address or a private name",
            KnownHosts::AnyUnlessConfigured => "a name that it was started with",
        }
    }
}

impl AllowedHost {
    fn covers(&self, host: &str) -> bool {
        match self {
            AllowedHost::Any => true,
            AllowedHost::Name(name) => name == host,
            AllowedHost::Below(suffix) => host.ends_with(suffix),
        }
    }
}

/// Whether the page came from this server: its origin then matches the `Host`.
fn is_own(origin: &str, parts: &request::Parts) -> bool {
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.zip(host).is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host))
}

/// Recognises what nearly all clients of a server on loopback send.
fn is_usual(host: &[u8]) -> bool {
    const USUAL: [&[u8]; 3] = [b"localhost", b"127.0.0.1", b"[::1]"];
    USUAL.iter().filter_map(|name| host.strip_prefix(*name)).any(|rest| match rest {
        [] => true,
        [b':', port @ ..] => port.iter().all(u8::is_ascii_digit),
        _ => false,
    })
}

/// The name without port, brackets, trailing dot and capitals.
fn host_name(host: &str) -> String {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn is_loopback(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        // The unspecified address also leads to this machine.
        Ok(address) => address.to_canonical().is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Names that no foreign page can have: addresses, names of one part (such as those of containers),
/// and names in domains reserved for private use.
fn is_private(host: &str) -> bool {
    const PRIVATE_DOMAINS: [&str; 5] = [".internal", ".local", ".test", ".home.arpa", ".svc"];
    let is_address = host.parse::<IpAddr>().is_ok();
    is_address || !host.contains('.') || PRIVATE_DOMAINS.iter().any(|end| host.ends_with(end))
}

/// A text that is not a host or not an origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSite(&'static str);

impl std::error::Error for InvalidSite {}

impl fmt::Display for InvalidSite {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl FromStr for AllowedHost {
    type Err = InvalidSite;

    fn from_str(text: &str) -> Result<AllowedHost, InvalidSite> {
        const EXPECTED: InvalidSite =
            InvalidSite("expected a host name without scheme and port, *.name, or *");
        let name = text.to_ascii_lowercase();
        let (suffix, rest) = match name.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, name.as_str()),
        };
        let rest = rest.trim_start_matches('[').trim_end_matches(']');
        let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let is_name = !rest.is_empty() && rest.bytes().all(is_in_name);
        match (suffix, name.as_str()) {
            (false, "*") => Ok(AllowedHost::Any),
            (true, _) if is_name => Ok(AllowedHost::Below(format!(".{rest}"))),
            (false, _) if is_name || rest.parse::<IpAddr>().is_ok() => {
                Ok(AllowedHost::Name(rest.strip_suffix('.').unwrap_or(rest).to_owned()))
            }
            _ => Err(EXPECTED),
        }
    }
}

impl FromStr for CorsOrigin {
    type Err = InvalidSite;

    fn from_str(text: &str) -> Result<CorsOrigin, InvalidSite> {
        const EXPECTED: InvalidSite =
            InvalidSite("expected an origin such as http://localhost:3000 (no path), null, or *");
        match text {
            "*" => return Ok(CorsOrigin::Any),
            "null" => return Ok(CorsOrigin::Origin(text.to_owned())),
            _ => {}
        }
        let origin = text.strip_suffix('/').unwrap_or(text);
        let (scheme, authority) = origin.split_once("://").ok_or(EXPECTED)?;
        let is_valid = !scheme.is_empty()
            && !authority.is_empty()
            && authority.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#@*,".contains(&byte));
        is_valid.then(|| CorsOrigin::Origin(origin.to_owned())).ok_or(EXPECTED)
    }
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn policy(hosts: KnownHosts, allowed: &[&str], origins: &[&str]) -> CrossSitePolicy {
        let allowed = allowed.iter().map(|host| host.parse().unwrap()).collect();
        CrossSitePolicy::new(
            hosts,
            allowed,
            origins.iter().map(|origin| origin.parse().unwrap()).collect(),
        )
    }

    fn parts(host: &str, origin: Option<&str>) -> request::Parts {
        let mut request = Request::builder().uri("/").header(HOST, host);
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        request.body(()).unwrap().into_parts().0
    }

    const LOOPBACK: [&str; 9] = [
        "localhost",
        "LOCALHOST:8000",
        "localhost.:8000",
        "zenobe.localhost:8000",
        "127.0.0.1",
        "127.9.9.9:1",
        "[::1]:8000",
        "[::ffff:127.0.0.1]:8000",
        "0.0.0.0:8000",
    ];
    const PRIVATE: [&str; 6] = [
        "dynamodb:8000",
        "host.docker.internal:8000",
        "db.default.svc.cluster.local",
        "db.default.svc",
        "192.168.1.7:8000",
        "[fe80::1]:8000",
    ];
    const PUBLIC: [&str; 5] = [
        "example.org",
        "rebound.example.org:8000",
        "localhost.example.org",
        "127.0.0.1.example.org",
        "",
    ];

    #[track_caller]
    fn check_hosts(policy: &CrossSitePolicy, hosts: &[&str], is_answered: bool) {
        for host in hosts {
            assert_eq!(policy.check(&parts(host, None)).is_ok(), is_answered, "{host}");
        }
    }

    #[test]
    fn on_loopback_only_its_own_names_are_answered() {
        let strict = policy(KnownHosts::Loopback, &[], &[]);
        check_hosts(&strict, &LOOPBACK, true);
        check_hosts(&strict, &PRIVATE, false);
        check_hosts(&strict, &PUBLIC, false);
        assert_eq!(
            strict.check(&parts("db.example.org:8000", None)).unwrap_err().to_string(),
            "the host name `db.example.org` is not one of this server's: call it by localhost or a \
             loopback address, or start it with --allowed-host db.example.org"
        );
        // Not a browser, which always names the host.
        let request = Request::builder().uri("/").body(()).unwrap();
        assert!(strict.check(&request.into_parts().0).is_ok());
        let rebound = Request::builder().uri("http://example.org/").header(HOST, "localhost");
        assert!(strict.check(&rebound.body(()).unwrap().into_parts().0).is_err());
    }

    #[test]
    fn where_anybody_is_accepted_public_names_are_not_answered() {
        let private = policy(KnownHosts::Private, &[], &[]);
        check_hosts(&private, &LOOPBACK, true);
        check_hosts(&private, &PRIVATE, true);
        check_hosts(&private, &PUBLIC[..4], false);
    }

    #[test]
    fn configured_names_are_answered_besides_loopback() {
        check_hosts(&CrossSitePolicy::default(), &PUBLIC, true);
        for hosts in [KnownHosts::AnyUnlessConfigured, KnownHosts::Loopback] {
            let listed = policy(hosts, &["db.example.org", "*.example.net", "10.0.0.1"], &[]);
            let answered =
                ["DB.example.org:8000", "a.b.example.net", "10.0.0.1:8000", "localhost:8000"];
            check_hosts(&listed, &answered, true);
            check_hosts(&listed, &["example.org", "example.net", "10.0.0.2"], false);
            check_hosts(&policy(hosts, &["*"], &[]), &PUBLIC, true);
        }
    }

    #[test]
    fn pages_are_answered_from_allowed_origins_and_from_the_servers_own() {
        let check = |policy: &CrossSitePolicy, origin: &str, granted: Option<&str>| {
            let parts = parts("localhost:8000", Some(origin));
            let given = policy.granted(&parts);
            assert_eq!(given.as_ref().map(|value| value.to_str().unwrap()), granted, "{origin}");
            assert_eq!(policy.check(&parts).is_ok(), granted.is_some(), "{origin}");
        };
        let own = "http://localhost:8000";
        let strict = policy(KnownHosts::Loopback, &[], &[]);
        check(&strict, own, Some(own));
        for foreign in ["http://localhost:3000", "http://localhost", "null", "http://example.org"] {
            check(&strict, foreign, None);
        }
        let listed = policy(KnownHosts::Loopback, &[], &["http://localhost:3000", "null"]);
        check(&listed, "http://localhost:3000", Some("http://localhost:3000"));
        check(&listed, "null", Some("null"));
        check(&listed, "https://localhost:3000", None);
        check(&policy(KnownHosts::Loopback, &[], &["*"]), "http://example.org", Some("*"));
        let refusal = strict.check(&parts("localhost", Some("http://a"))).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "web pages from `http://a` may not call this server: start it with --cors-origin http://a \
             to allow them"
        );
    }

    #[test]
    fn malformed_hosts_and_origins_are_rejected() {
        for text in ["", "http://a", "a:8000", "a/b", "*.", "**", "a,b", "a b"] {
            assert!(text.parse::<AllowedHost>().is_err(), "{text}");
        }
        for text in
            ["", "localhost:3000", "http://", "http://a/b", "http://*", "://a", "http://u@a"]
        {
            assert!(text.parse::<CorsOrigin>().is_err(), "{text}");
        }
        let stripped: CorsOrigin = "http://localhost:3000/".parse().unwrap();
        assert_eq!(stripped, CorsOrigin::Origin("http://localhost:3000".into()));
        assert_eq!("[::1]".parse(), Ok(AllowedHost::Name("::1".into())));
    }
}
