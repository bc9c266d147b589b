//! Who may call, and whose tables a caller sees.

use std::sync::Arc;
use std::time::SystemTime;

use hyper::http::request;
use zenobe_api::{ApiError, Exception};
use zenobe_auth::{
    AuthError, AuthErrorType, CredentialScope, Credentials, ParseRules, PresentedSignature,
    RequestHead, sha256,
};
use zenobe_engine::schema::Namespace;

pub struct Access {
    /// Signatures are verified against these; `None` accepts any well-formed signature.
    credentials: Option<Credentials>,
    namespaces_from_credentials: bool,
    namespace: Arc<Namespace>,
}

impl Access {
    pub fn new(
        credentials: Option<Credentials>,
        namespaces_from_credentials: bool,
        namespace: Namespace,
    ) -> Access {
        Access { credentials, namespaces_from_credentials, namespace: Arc::new(namespace) }
    }

    pub fn region(&self) -> &str {
        &self.namespace.region
    }

    /// Authenticates a request by its head and its body as sent, and finds the caller's namespace.
    pub fn admit(
        &self,
        parts: &request::Parts,
        body_as_sent: &[u8],
    ) -> Result<Arc<Namespace>, AuthError> {
        let head = RequestHead {
            method: parts.method.as_str(),
            path: parts.uri.path(),
            query: parts.uri.query().unwrap_or_default(),
            headers: &parts.headers,
        };
        let verifies = self.credentials.is_some();
        let rules = ParseRules {
            now: verifies.then(SystemTime::now),
            region: (verifies && !self.namespaces_from_credentials).then(|| self.region()),
        };
        let signature = PresentedSignature::parse(&head, &rules)?;
        if let Some(credentials) = &self.credentials {
            signature.verify(&head, &sha256(body_as_sent), credentials)?;
        }
        Ok(self.namespace_of(signature.scope))
    }

    fn namespace_of(&self, scope: CredentialScope) -> Arc<Namespace> {
        match self.namespaces_from_credentials {
            true => Arc::new(Namespace { account: scope.access_key, region: scope.region }),
            false => self.namespace.clone(),
        }
    }
}

/// The answer to a request that was not admitted.
pub fn refusal(error: &AuthError) -> ApiError {
    let exception = match error.error_type() {
        AuthErrorType::MissingAuthenticationToken => Exception::MissingAuthenticationToken,
        AuthErrorType::IncompleteSignature => Exception::IncompleteSignature,
        AuthErrorType::InvalidSignature => Exception::InvalidSignature,
        AuthErrorType::UnrecognizedClient => Exception::UnrecognizedClient,
    };
    ApiError::new(exception, error.to_string())
}
