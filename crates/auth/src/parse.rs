//! Taking a signature out of a request, with every fault that shows without a secret, in DynamoDB's
//! order.

use std::time::SystemTime;

use http::HeaderMap;

use crate::canonical::query_pairs;
use crate::error::{AuthError, HeaderPart, ScopeFault};
use crate::signing::{ALGORITHM, TERMINATOR};
use crate::timestamp::Timestamp;

/// Signatures for streams name this service, too.
const SERVICE: &str = "dynamodb";
const AUTHORIZATION: &str = "authorization";
const SECURITY_TOKEN: &str = "x-amz-security-token";

/// The signed part of a request, except for its body.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    pub method: &'a str,
    pub path: &'a str,
    /// Without the question mark; empty if there is none.
    pub query: &'a str,
    pub headers: &'a HeaderMap,
}

/// What a signature must satisfy besides being well formed.
#[derive(Debug, Clone, Copy, Default)]
pub struct ParseRules<'a> {
    /// Given where signatures are verified: the date must lie within 15 minutes of it.
    pub now: Option<SystemTime>,
    /// The only region that credentials may be scoped to; `None` takes any.
    pub region: Option<&'a str>,
}

/// Whose signature a request carries, and for which region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialScope {
    pub access_key: String,
    /// `yyyymmdd`.
    pub date: String,
    pub region: String,
    pub service: String,
}

/// A well-formed signature that has not been verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentedSignature {
    pub scope: CredentialScope,
    pub(crate) date: String,
    /// Lower case, sorted and distinct.
    pub(crate) signed_headers: Vec<String>,
    pub(crate) signature: String,
    pub(crate) session_token: Option<String>,
}

impl PresentedSignature {
    pub fn parse(
        head: &RequestHead<'_>,
        rules: &ParseRules<'_>,
    ) -> Result<PresentedSignature, AuthError> {
        let parts = Parts::find(head)?;
        let date = Timestamp::parse(&parts.date)
            .ok_or_else(|| AuthError::DateFormat { given: parts.date.clone() })?;
        if let Some(now) = rules.now {
            check_freshness(date, Timestamp::from_system_time(now))?;
        }
        let mut signed_headers: Vec<String> =
            parts.signed_headers.split(';').map(str::to_ascii_lowercase).collect();
        signed_headers.sort();
        // A name that is repeated adds its header's value again, and so lets a small request make a
        // large text to be signed.
        signed_headers.dedup();
        if !signed_headers.iter().any(|name| name == "host") {
            return Err(AuthError::HostNotSigned);
        }
        if parts.algorithm != ALGORITHM {
            return Err(AuthError::Algorithm { given: parts.algorithm });
        }
        let scope = parse_scope(&parts.credential, date, rules)?;
        let Parts { date, signature, session_token, .. } = parts;
        Ok(PresentedSignature { scope, date, signed_headers, signature, session_token })
    }
}

/// The texts of a signature, wherever they stand.
struct Parts {
    algorithm: String,
    credential: String,
    signed_headers: String,
    signature: String,
    date: String,
    session_token: Option<String>,
}

impl Parts {
    fn find(head: &RequestHead<'_>) -> Result<Parts, AuthError> {
        let query = QueryParameters::new(head.query);
        let header = header_text(head.headers, AUTHORIZATION);
        match (header, query.get("X-Amz-Algorithm")) {
            (Some(_), Some(_)) => Err(AuthError::TwoForms),
            (None, Some(_)) => Parts::from_query(&query),
            (Some(header), None) if header.trim_start().starts_with("AWS4-") => {
                Parts::from_header(header, head.headers)
            }
            _ => Err(AuthError::MissingToken),
        }
    }

    fn from_header(header: String, headers: &HeaderMap) -> Result<Parts, AuthError> {
        let mut words = header.split([',', ' ']).filter(|word| !word.is_empty());
        let algorithm = words.next().unwrap_or_default().to_owned();
        let parameters: Vec<_> = words.filter_map(|word| word.split_once('=')).collect();
        let parameter = |wanted: &str| {
            let found = parameters.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| (*value).to_owned()).filter(|value| !value.is_empty())
        };
        let (credential, signature) = (parameter("Credential"), parameter("Signature"));
        let signed_headers = parameter("SignedHeaders");
        let date = header_text(headers, "x-amz-date").or_else(|| header_text(headers, "date"));
        let date = date.filter(|date| !date.is_empty());
        let presence = [
            (HeaderPart::Credential, credential.is_some()),
            (HeaderPart::Signature, signature.is_some()),
            (HeaderPart::SignedHeaders, signed_headers.is_some()),
            (HeaderPart::Date, date.is_some()),
        ];
        let session_token = header_text(headers, SECURITY_TOKEN);
        match (credential, signature, signed_headers, date) {
            (Some(credential), Some(signature), Some(signed_headers), Some(date)) => {
                Ok(Parts { algorithm, credential, signed_headers, signature, date, session_token })
            }
            _ => Err(AuthError::IncompleteHeader { missing: absent(&presence), header }),
        }
    }

    fn from_query(query: &QueryParameters) -> Result<Parts, AuthError> {
        const REQUIRED: [&str; 5] = [
            "X-Amz-Algorithm",
            "X-Amz-Credential",
            "X-Amz-Signature",
            "X-Amz-SignedHeaders",
            "X-Amz-Date",
        ];
        let values = REQUIRED.map(|name| query.get(name).filter(|value| !value.is_empty()));
        let [Some(algorithm), Some(credential), Some(signature), Some(signed_headers), Some(date)] =
            values.clone()
        else {
            let missing = absent(&std::array::from_fn::<_, 5, _>(|index| {
                (REQUIRED[index], values[index].is_some())
            }));
            return Err(AuthError::IncompleteQuery { missing });
        };
        let session_token = query.get("X-Amz-Security-Token");
        Ok(Parts { algorithm, credential, signed_headers, signature, date, session_token })
    }
}

fn absent<T: Copy>(presence: &[(T, bool)]) -> Vec<T> {
    presence.iter().filter(|(_, present)| !present).map(|(part, _)| *part).collect()
}

struct QueryParameters(Vec<(Vec<u8>, Vec<u8>)>);

impl QueryParameters {
    fn new(query: &str) -> QueryParameters {
        QueryParameters(query_pairs(query))
    }

    fn get(&self, name: &str) -> Option<String> {
        let found = self.0.iter().find(|(given, _)| given == name.as_bytes());
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }
}

fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn check_freshness(date: Timestamp, now: Timestamp) -> Result<(), AuthError> {
    if date < now.minus_skew() {
        return Err(AuthError::Expired { date, now });
    }
    if date > now.plus_skew() {
        return Err(AuthError::NotYetCurrent { date, now });
    }
    Ok(())
}

fn parse_scope(
    credential: &str,
    date: Timestamp,
    rules: &ParseRules<'_>,
) -> Result<CredentialScope, AuthError> {
    let elements: Vec<&str> = credential.split('/').collect();
    let [access_key, day, region, service, terminator] = elements[..] else {
        return Err(AuthError::CredentialShape { given: credential.to_owned() });
    };
    let mut faults = Vec::new();
    let region_is_valid = match rules.region {
        Some(expected) => region == expected,
        None => !region.is_empty(),
    };
    if !region_is_valid {
        faults.push(ScopeFault::Region { given: region.to_owned() });
    }
    if service != SERVICE {
        faults.push(ScopeFault::Service);
    }
    if terminator != TERMINATOR {
        faults.push(ScopeFault::Terminator { given: terminator.to_owned() });
    }
    if day != date.day() {
        faults.push(ScopeFault::Date { given: day.to_owned(), date });
    }
    if !faults.is_empty() {
        return Err(AuthError::Scope { faults });
    }
    if access_key.is_empty() {
        return Err(AuthError::UnknownAccessKey);
    }
    Ok(CredentialScope {
        access_key: access_key.to_owned(),
        date: day.to_owned(),
        region: region.to_owned(),
        service: service.to_owned(),
    })
}
