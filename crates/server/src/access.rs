//! Who may call, and which tables a caller sees.

use std::sync::Arc;
use std::time::SystemTime;

use hyper::header::{AUTHORIZATION, ORIGIN};
use hyper::http::request;
use zenobe_api::{ApiError, Exception};
use zenobe_auth::{
    AuthError, AuthErrorType, CredentialScope, Credentials, DYNAMODB, ParseRules,
    PresentedSignature, RequestHead, sha256,
};
use zenobe_engine::schema::Namespace;

use crate::http::allowed_hosts_and_origins::CrossSiteRefusal;

pub struct AccessControl {
    /// The keys to verify signatures with; `None` accepts any well-formed signature.
    credentials: Option<Credentials>,
    namespaces_from_credentials: bool,
    namespace: Arc<Namespace>,
    is_on_loopback: bool,
    /// Whether to accept requests without a signature, or with a malformed one.
    accepts_unsigned: bool,
}

/// Why an admin request is refused.
#[derive(Debug, thiserror::Error)]
pub enum AdminRefusal {
    #[error(
        "admin requests need a server on a loopback address, or verified signatures \
         (--credentials)"
    )]
    Open,
    #[error("web pages may not send admin requests")]
    WebPage,
    #[error(transparent)]
    Site(#[from] CrossSiteRefusal),
    #[error(transparent)]
    Signature(#[from] AuthError),
}

impl AccessControl {
    pub fn new(
        credentials: Option<Credentials>,
        namespaces_from_credentials: bool,
        namespace: Namespace,
    ) -> AccessControl {
        let namespace = Arc::new(namespace);
        AccessControl {
            credentials,
            namespaces_from_credentials,
            namespace,
            is_on_loopback: false,
            accepts_unsigned: false,
        }
    }

    /// Uses signatures only to choose the tables. Has no effect where signatures are verified.
    pub fn accepting_unsigned(self, accepts_unsigned: bool) -> AccessControl {
        AccessControl { accepts_unsigned: accepts_unsigned && self.credentials.is_none(), ..self }
    }

    /// Sets whether only this machine can reach the server.
    pub fn on_loopback(self, is_on_loopback: bool) -> AccessControl {
        AccessControl { is_on_loopback, ..self }
    }

    pub fn namespace(&self) -> &Arc<Namespace> {
        &self.namespace
    }

    pub fn region(&self) -> &str {
        &self.namespace.region
    }

    /// Whether signatures are verified.
    pub fn verifies(&self) -> bool {
        self.credentials.is_some()
    }

    /// Where signatures are verified, checks everything that needs no body: the signature's form,
    /// its date, and that its key exists.
    pub fn check_head(
        &self,
        parts: &request::Parts,
        service: &'static str,
    ) -> Result<(), AuthError> {
        let Some(credentials) = &self.credentials else { return Ok(()) };
        let head = request_head(parts);
        PresentedSignature::parse(&head, &self.rules(service))?
            .check_key(&head, credentials)
            .map(drop)
    }

    /// Authenticates a request of a service by its head and its body as sent, and returns the
    /// caller's namespace.
    pub fn admit(
        &self,
        parts: &request::Parts,
        body_as_sent: &[u8],
        service: &'static str,
    ) -> Result<Arc<Namespace>, AuthError> {
        match self.admit_signed(parts, body_as_sent, service) {
            Err(_) if self.accepts_unsigned => Ok(self.namespace_of_unsigned(parts)),
            outcome => outcome,
        }
    }

    fn admit_signed(
        &self,
        parts: &request::Parts,
        body_as_sent: &[u8],
        service: &'static str,
    ) -> Result<Arc<Namespace>, AuthError> {
        let head = request_head(parts);
        let signature = PresentedSignature::parse(&head, &self.rules(service))?;
        if let Some(credentials) = &self.credentials {
            signature.verify(&head, &sha256(body_as_sent), credentials)?;
        }
        Ok(self.namespace_of(&signature))
    }

    fn rules(&self, service: &'static str) -> ParseRules<'_> {
        let verifies = self.verifies();
        let has_one_region = verifies && !self.namespaces_from_credentials;
        let region = has_one_region.then(|| self.region());
        ParseRules { now: SystemTime::now, verifies, region, service }
    }

    /// Refuses what [`AccessControl::admit_admin`] would refuse whatever the body says.
    pub fn check_admin_head(&self, parts: &request::Parts) -> Result<(), AdminRefusal> {
        // A page in a browser on this machine reaches loopback as well.
        if parts.headers.contains_key(ORIGIN) {
            return Err(AdminRefusal::WebPage);
        }
        if !self.verifies() && !self.is_on_loopback {
            return Err(AdminRefusal::Open);
        }
        Ok(self.check_head(parts, DYNAMODB)?)
    }

    /// Like [`AccessControl::admit`], for requests that are not limited to tables. Without verified
    /// signatures only this machine may send them; a signature then only chooses a namespace.
    pub fn admit_admin(
        &self,
        parts: &request::Parts,
        body_as_sent: &[u8],
    ) -> Result<Arc<Namespace>, AdminRefusal> {
        self.check_admin_head(parts)?;
        match self.verifies() || parts.headers.contains_key(AUTHORIZATION) {
            true => Ok(self.admit(parts, body_as_sent, DYNAMODB)?),
            false => Ok(self.namespace.clone()),
        }
    }

    /// Metrics show table and trigger names. Beyond this machine, only callers with a verified
    /// signature may read them, unless the server accepts anybody.
    pub fn admit_metrics(&self, parts: &request::Parts) -> Result<(), AuthError> {
        match (&self.credentials, self.is_on_loopback) {
            (Some(_), false) => self.admit(parts, b"", DYNAMODB).map(|_| ()),
            (Some(_), true) | (None, _) => Ok(()),
        }
    }

    /// Tools that fake a signature often leave half of it out, but include the access key and the
    /// region.
    fn namespace_of_unsigned(&self, parts: &request::Parts) -> Arc<Namespace> {
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let scope = header.and_then(|text| text.split_once("Credential=")).and_then(|(_, rest)| {
            let mut scope = rest.split(['/', ',', ' ']);
            let access_key = scope.next().filter(|key| !key.is_empty())?;
            let region = scope.nth(1).filter(|region| !region.is_empty())?;
            Some((access_key, region))
        });
        match scope.filter(|_| self.namespaces_from_credentials) {
            None => self.namespace.clone(),
            Some((access_key, region)) => {
                Arc::new(Namespace { account: access_key.to_owned(), region: region.to_owned() })
            }
        }
    }

    fn namespace_of(&self, signature: &PresentedSignature<'_>) -> Arc<Namespace> {
        if !self.namespaces_from_credentials {
            return self.namespace.clone();
        }
        let CredentialScope { access_key, region, .. } = signature.scope();
        Arc::new(Namespace { account: access_key.to_owned(), region: region.to_owned() })
    }
}

fn request_head(parts: &request::Parts) -> RequestHead<'_> {
    RequestHead {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or_default(),
        headers: &parts.headers,
    }
}

/// The response to a request that was not admitted.
pub fn refusal(error: &AuthError) -> ApiError {
    let exception = match error.error_type() {
        AuthErrorType::MissingAuthenticationToken => Exception::MissingAuthenticationToken,
        AuthErrorType::IncompleteSignature => Exception::IncompleteSignature,
        AuthErrorType::InvalidSignature => Exception::InvalidSignature,
        AuthErrorType::UnrecognizedClient => Exception::UnrecognizedClient,
    };
    ApiError::new(exception, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_requests_are_admitted_if_configured() {
        let admit = |accepts: bool, namespaces: bool, header: Option<&str>| {
            let namespace = Namespace { account: "0".into(), region: "r".into() };
            let access =
                AccessControl::new(None, namespaces, namespace).accepting_unsigned(accepts);
            let mut request = hyper::Request::builder();
            if let Some(header) = header {
                request = request.header(AUTHORIZATION, header);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            let admitted = access.admit(&parts, b"{}", DYNAMODB).ok();
            admitted.map(|namespace| format!("{}/{}", namespace.account, namespace.region))
        };
        let half = Some("AWS4-HMAC-SHA256 Credential=key/20260101/eu-west-1/dynamodb/aws4_request");
        assert_eq!(admit(false, false, None), None);
        assert_eq!(admit(false, true, half), None);
        assert_eq!(admit(true, false, None).as_deref(), Some("0/r"));
        assert_eq!(admit(true, false, half).as_deref(), Some("0/r"));
        assert_eq!(admit(true, true, half).as_deref(), Some("key/eu-west-1"));
        assert_eq!(admit(true, true, Some("Basic x")).as_deref(), Some("0/r"));
        let access = AccessControl::new(
            Some(Credentials::parse("a:b").unwrap()),
            false,
            Namespace { account: "0".into(), region: "r".into() },
        );
        let (parts, ()) = hyper::Request::new(()).into_parts();
        assert!(access.accepting_unsigned(true).admit(&parts, b"", DYNAMODB).is_err());
    }

    #[test]
    fn metrics_are_open_on_loopback_and_where_anybody_is_accepted() {
        let check = |credentials: Option<&str>, is_on_loopback, is_admitted| {
            let credentials = credentials.map(|text| Credentials::parse(text).unwrap());
            let namespace = Namespace { account: "0".into(), region: "r".into() };
            let access =
                AccessControl::new(credentials, false, namespace).on_loopback(is_on_loopback);
            let (parts, ()) = hyper::Request::new(()).into_parts();
            assert_eq!(access.admit_metrics(&parts).is_ok(), is_admitted, "{is_on_loopback}");
        };
        check(None, true, true);
        check(None, false, true);
        check(Some("a:b"), true, true);
        check(Some("a:b"), false, false);
    }
}
