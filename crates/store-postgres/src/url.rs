//! Parses the store's URL: `postgres://user:password@a,b,c/database?sslmode=verify-full`.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, Host, SslMode, TargetSessionAttrs};
use zenobe_store::Error;

/// How the server's certificate is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// Not at all: no TLS, or TLS with any server.
    Unverified,
    /// One of these authorities must have signed it, and it must name the host. `None` trusts the authorities that browsers trust.
    Verified { authorities: Option<PathBuf> },
}

#[derive(Debug, Clone)]
pub struct ServerUrl {
    /// One for each host, in the order of the URL.
    pub hosts: Vec<Config>,
    pub tls: Tls,
}

impl ServerUrl {
    /// # Errors
    /// If the URL is invalid, or asks for something unsafe.
    pub fn parse(url: &str) -> Result<ServerUrl, Error> {
        let refuse = |detail: String| Error::Open { detail };
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(refuse("the URL of a store begins with postgres://".to_owned()));
        }
        let (rest, own) = take_own_parameters(url);
        let mut config: Config = rest.parse().map_err(|error: tokio_postgres::Error| {
            // The error's text contains the name of the parameter, never the password.
            refuse(format!("the URL is invalid: {}", crate::statement_error::text(&error)))
        })?;
        if config.get_hosts().is_empty() {
            return Err(refuse("the URL names no host".to_owned()));
        }
        if config.get_target_session_attrs() == TargetSessionAttrs::ReadOnly {
            let detail = "target_session_attrs must be read-write: a standby cannot be written to";
            return Err(refuse(detail.to_owned()));
        }
        let tls = tls(&own, &mut config).map_err(refuse)?;
        if config.get_channel_binding() == ChannelBinding::Require {
            return Err(refuse("channel_binding=require is not supported".to_owned()));
        }
        complete(&mut config);
        let hosts = (0..config.get_hosts().len()).map(|number| only(&config, number)).collect();
        Ok(ServerUrl { hosts, tls })
    }

    /// The same hosts, to be read while they are standbys.
    pub fn standbys(&self) -> impl Iterator<Item = ServerUrl> {
        self.hosts.iter().map(|host| {
            let mut host = host.clone();
            host.target_session_attrs(TargetSessionAttrs::ReadOnly);
            ServerUrl { hosts: vec![host], tls: self.tls.clone() }
        })
    }
}

/// The same for one of the hosts.
fn only(config: &Config, number: usize) -> Config {
    let mut one = Config::new();
    match &config.get_hosts()[number] {
        Host::Tcp(name) => one.host(name),
        #[cfg(unix)]
        Host::Unix(path) => one.host_path(path),
    };
    if let Some(address) = config.get_hostaddrs().get(number) {
        one.hostaddr(*address);
    }
    let ports = config.get_ports();
    if let Some(port) = ports.get(number).or(ports.first()) {
        one.port(*port);
    }
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(name) = config.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    if let Some(timeout) = config.get_connect_timeout() {
        one.connect_timeout(*timeout);
    }
    if let Some(timeout) = config.get_tcp_user_timeout() {
        one.tcp_user_timeout(*timeout);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .target_session_attrs(config.get_target_session_attrs());
    one
}

/// Sets defaults: connect only to the primary, and detect a server that has vanished.
fn complete(config: &mut Config) {
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    if config.get_application_name().is_none() {
        config.application_name("zenobe");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(3));
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(10));
    }
    config.keepalives_idle(Duration::from_secs(5));
    config.keepalives_interval(Duration::from_secs(2));
    config.keepalives_retries(3);
}

#[derive(Default)]
struct Own {
    sslmode: Option<String>,
    sslrootcert: Option<PathBuf>,
}

/// Removes the parameters that the client library does not know from the URL.
fn take_own_parameters(url: &str) -> (String, Own) {
    let Some((base, query)) = url.split_once('?') else {
        return (url.to_owned(), Own::default());
    };
    let mut own = Own::default();
    let mut kept = Vec::new();
    for parameter in query.split('&') {
        match parameter.split_once('=') {
            Some(("sslmode", mode)) => own.sslmode = Some(mode.to_owned()),
            Some(("sslrootcert", path)) => own.sslrootcert = Some(unescaped(path).into()),
            _ => kept.push(parameter),
        }
    }
    let base = base.to_owned();
    (if kept.is_empty() { base } else { format!("{base}?{}", kept.join("&")) }, own)
}

/// Decodes percent-encoding. Invalid sequences stay as they are.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let escaped = (first == b'%').then(|| text_byte(behind.get(..2)?)).flatten();
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn text_byte(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn tls(own: &Own, config: &mut Config) -> Result<Tls, String> {
    let authorities = own.sslrootcert.clone();
    let (mode, tls) = match own.sslmode.as_deref() {
        Some("disable") => (SslMode::Disable, Tls::Unverified),
        None | Some("prefer") if authorities.is_none() => (SslMode::Prefer, Tls::Unverified),
        // As in libpq: TLS, with any server.
        Some("require") if authorities.is_none() => (SslMode::Require, Tls::Unverified),
        None | Some("prefer" | "require" | "verify-full") => {
            (SslMode::Require, Tls::Verified { authorities })
        }
        Some(other) => {
            return Err(format!(
                "sslmode={other} is not supported: disable, prefer, require or verify-full"
            ));
        }
    };
    config.ssl_mode(mode);
    Ok(tls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> ServerUrl {
        ServerUrl::parse(url).unwrap()
    }

    fn refusal(url: &str) -> String {
        ServerUrl::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn several_hosts_are_tried_for_the_primary() {
        let url = "postgres://u:p@a,b:6000,c/db?target_session_attrs=read-write&options=-cx%3Dy";
        let target = parsed(url);
        for (host, (name, port)) in target.hosts.iter().zip([("a", 5432), ("b", 6000), ("c", 5432)])
        {
            assert_eq!(host.get_hosts(), [Host::Tcp(name.to_owned())]);
            assert_eq!(host.get_ports(), [port]);
            assert_eq!((host.get_user(), host.get_password()), (Some("u"), Some(&b"p"[..])));
            assert_eq!((host.get_dbname(), host.get_options()), (Some("db"), Some("-cx=y")));
        }
        for url in ["postgres://a,b/db", "postgres://a/db?target_session_attrs=any"] {
            for host in parsed(url).hosts {
                let attributes = host.get_target_session_attrs();
                assert_eq!(attributes, TargetSessionAttrs::ReadWrite, "{url}");
            }
        }
    }

    #[test]
    fn the_mode_says_how_a_certificate_is_checked() {
        let of = |parameters: &str| {
            let target = parsed(&format!("postgres://a/db?{parameters}"));
            (target.hosts[0].get_ssl_mode(), target.tls)
        };
        assert_eq!(of("sslmode=disable"), (SslMode::Disable, Tls::Unverified));
        assert_eq!(of("application_name=x"), (SslMode::Prefer, Tls::Unverified));
        assert_eq!(of("sslmode=require"), (SslMode::Require, Tls::Unverified));
        let verified = |path: Option<&str>| Tls::Verified { authorities: path.map(PathBuf::from) };
        assert_eq!(of("sslmode=verify-full"), (SslMode::Require, verified(None)));
        assert_eq!(
            of("sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem"),
            (SslMode::Require, verified(Some("/etc/ca.pem")))
        );
        assert!(refusal("postgres://a/db?sslmode=verify-ca").contains("sslmode=verify-ca"));
    }

    #[test]
    fn what_cannot_be_is_refused_without_the_password() {
        assert!(refusal("mysql://a/db").contains("begins with postgres://"));
        assert!(refusal("postgres:///db").contains("names no host"));
        assert!(refusal("postgres://a/db?target_session_attrs=read-only").contains("standby"));
        let unknown = refusal("postgres://u:secret@a/db?colour=red");
        assert!(unknown.contains("colour") && !unknown.contains("secret"), "{unknown}");
    }
}
