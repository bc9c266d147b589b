//! Recomputes a signature.

use hmac::Mac;

use crate::credentials::{Credential, Credentials};
use crate::error::AuthError;
use crate::parse::{PresentedSignature, RequestHead};
use crate::signing::{Sha256Hash, ToSign};

/// The prefix of AWS's own headers. Proxies add others, such as `x-amzn-trace-id`.
const SIGNED_PREFIX: &str = "x-amz-";

impl PresentedSignature<'_> {
    /// Checks what needs no body: the signature covers every `x-amz-` header, and its access key is
    /// known.
    pub fn check_key<'c>(
        &self,
        head: &RequestHead<'_>,
        credentials: &'c Credentials,
    ) -> Result<&'c Credential, AuthError> {
        check_coverage(head, &self.signed_headers())?;
        credentials.get(self.scope().access_key).ok_or(AuthError::UnknownAccessKey)
    }

    /// Checks that one of the credentials signed this head and body, and that the signature covers
    /// every `x-amz-` header. Parsing already checked its age, and that it covers `host`.
    pub fn verify(
        &self,
        head: &RequestHead<'_>,
        body_hash: &Sha256Hash,
        credentials: &Credentials,
    ) -> Result<(), AuthError> {
        let credential = self.check_key(head, credentials)?;
        let (scope, signed_headers) = (self.scope(), self.signed_headers());
        let to_sign = ToSign::new(head, &signed_headers, &scope, &self.date, body_hash);
        let mac = to_sign.mac(&credential.secret_key, &scope);
        // `verify_slice` compares in constant time, so timing reveals nothing about the signature.
        let matches = hex::decode(self.signature.as_bytes())
            .is_ok_and(|signature| mac.verify_slice(&signature).is_ok());
        if !matches {
            return Err(AuthError::SignatureMismatch {
                canonical_request: String::from_utf8_lossy(&to_sign.canonical_request).into_owned(),
                string_to_sign: to_sign.string_to_sign,
            });
        }
        match self.session_token.as_deref() == credential.session_token.as_deref() {
            true => Ok(()),
            false => Err(AuthError::SessionToken),
        }
    }
}

/// The `x-amz-` headers define the request, so they must be signed. Otherwise anyone who sees the
/// request could ask for something else in the caller's name.
fn check_coverage(head: &RequestHead<'_>, signed_headers: &[String]) -> Result<(), AuthError> {
    let names = head.headers.keys().map(|name| name.as_str());
    let unsigned = names
        .filter(|name| name.starts_with(SIGNED_PREFIX))
        .find(|name| !signed_headers.iter().any(|signed| signed == name));
    match unsigned {
        None => Ok(()),
        Some(name) => Err(AuthError::HeaderNotSigned { name: name.to_owned() }),
    }
}
