//! The computation of Signature Version 4, for verifying and for signing.

use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use sha2::{Digest, Sha256};

use crate::canonical::{canonical_headers, canonical_query};
use crate::credentials::Credential;
use crate::parse::{CredentialScope, RequestHead};

pub const ALGORITHM: &str = "AWS4-HMAC-SHA256";
pub const TERMINATOR: &str = "aws4_request";

pub type Sha256Hash = [u8; 32];

pub fn sha256(bytes: &[u8]) -> Sha256Hash {
    Sha256::digest(bytes).into()
}

/// What a signature is computed over.
pub struct ToSign {
    pub canonical_request: Vec<u8>,
    pub string_to_sign: String,
}

impl ToSign {
    pub fn new(
        head: &RequestHead<'_>,
        signed_headers: &[String],
        scope: &CredentialScope<'_>,
        date: &str,
        body_hash: &Sha256Hash,
    ) -> ToSign {
        let mut canonical_request =
            format!("{}\n{}\n{}\n", head.method, head.path, canonical_query(head.query))
                .into_bytes();
        canonical_request.extend(canonical_headers(head.headers, signed_headers));
        let end = format!("\n{}\n{}", signed_headers.join(";"), hex::encode(body_hash));
        canonical_request.extend_from_slice(end.as_bytes());
        let CredentialScope { date: day, region, service, .. } = scope;
        let hash = hex::encode(sha256(&canonical_request));
        let string_to_sign =
            format!("{ALGORITHM}\n{date}\n{day}/{region}/{service}/{TERMINATOR}\n{hash}");
        ToSign { canonical_request, string_to_sign }
    }

    /// The keyed hash of the string to sign, ready to read or compare.
    pub fn mac(&self, secret_key: &str, scope: &CredentialScope<'_>) -> Hmac<Sha256> {
        let initial = format!("AWS4{secret_key}").into_bytes();
        let steps = [scope.date, scope.region, scope.service, TERMINATOR];
        let key = steps.iter().fold(initial, |key, step| {
            keyed(&key, step.as_bytes()).finalize().into_bytes().to_vec()
        });
        keyed(&key, self.string_to_sign.as_bytes())
    }
}

fn keyed(key: &[u8], message: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac
}

/// Signs requests as a client does, for tests and for tools that call a server.
#[derive(Debug, Clone)]
pub struct Signer<'a> {
    pub credential: &'a Credential,
    pub region: &'a str,
    pub service: &'a str,
    /// `yyyymmddThhmmssZ`.
    pub date: &'a str,
}

impl Signer<'_> {
    /// The value of the Authorization header. It signs all of `headers`, which must hold the host
    /// and the date.
    pub fn authorization(
        &self,
        method: &str,
        path: &str,
        query: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> String {
        let mut signed: Vec<String> = headers.keys().map(|name| name.as_str().into()).collect();
        signed.sort();
        let scope = CredentialScope {
            access_key: &self.credential.access_key,
            date: self.date.get(..8).unwrap_or_default(),
            region: self.region,
            service: self.service,
        };
        let head = RequestHead { method, path, query, headers };
        let to_sign = ToSign::new(&head, &signed, &scope, self.date, &sha256(body));
        let mac = to_sign.mac(&self.credential.secret_key, &scope).finalize().into_bytes();
        format!(
            "{ALGORITHM} Credential={}/{}/{}/{}/{TERMINATOR}, SignedHeaders={}, Signature={}",
            scope.access_key,
            scope.date,
            scope.region,
            scope.service,
            signed.join(";"),
            hex::encode(mac)
        )
    }
}
