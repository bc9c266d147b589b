//! Extracts a signature from a request and reports every fault that shows without a secret, in
//! DynamoDB's order.

use std::borrow::Cow;
use std::time::SystemTime;

use http::header::{AUTHORIZATION, DATE};
use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::{memchr, memchr2};

use crate::canonical::query_pairs;
use crate::error::{AuthError, HeaderPart, ScopeFault};
use crate::freshness::Freshness;
use crate::signing::{ALGORITHM, TERMINATOR};
use crate::timestamp::Timestamp;

/// The service that signatures name, for streams as well.
pub const DYNAMODB: &str = "dynamodb";
/// The length of `yyyymmdd`.
const DAY_LENGTH: usize = 8;
static AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");
static SECURITY_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// The signed part of a request, except for its body.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    pub method: &'a str,
    pub path: &'a str,
    /// Without the question mark; empty if there is none.
    pub query: &'a str,
    pub headers: &'a HeaderMap,
}

/// What a signature must satisfy besides its form.
#[derive(Debug, Clone, Copy)]
pub struct ParseRules<'a> {
    /// The server's clock.
    pub now: fn() -> SystemTime,
    /// Whether the caller will verify the signature. If not, an old date passes as long as nothing
    /// else is wrong, and so does any service: signers that see an IP address instead of a host
    /// name leave it empty.
    pub verifies: bool,
    /// The only region that credentials may be scoped to; `None` accepts any.
    pub region: Option<&'a str>,
    /// The service that credentials must be scoped to, if the signature is verified.
    pub service: &'static str,
}

impl Default for ParseRules<'_> {
    fn default() -> Self {
        ParseRules { now: SystemTime::now, verifies: false, region: None, service: DYNAMODB }
    }
}

/// Who signed a request, and for which region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialScope<'a> {
    pub access_key: &'a str,
    /// `yyyymmdd`.
    pub date: &'a str,
    pub region: &'a str,
    pub service: &'a str,
}

/// A well-formed signature, not yet verified. It borrows its texts from the head wherever it can,
/// because most servers only look at them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentedSignature<'a> {
    /// Has the five elements of a scope.
    credential: Cow<'a, str>,
    pub(crate) date: Cow<'a, str>,
    /// As sent: names separated by semicolons.
    signed_headers: Cow<'a, str>,
    pub(crate) signature: Cow<'a, str>,
    pub(crate) session_token: Option<Cow<'a, str>>,
}

impl<'a> PresentedSignature<'a> {
    pub fn parse(
        head: &RequestHead<'a>,
        rules: &ParseRules<'_>,
    ) -> Result<PresentedSignature<'a>, AuthError> {
        let parts = Parts::find(head)?;
        let date = Timestamp::parse(&parts.date)
            .ok_or_else(|| AuthError::DateFormat { given: parts.date.to_string() })?;
        let freshness = Freshness::new(date, parts.expires.as_deref())?;
        if rules.verifies {
            freshness.check(rules.now)?;
        }
        // DynamoDB checks the clock first, so it reports an old date before any other fault.
        parts.check(date, rules).or_else(|fault| freshness.check(rules.now).and(Err(fault)))?;
        let Parts { credential, date, signed_headers, signature, session_token, .. } = parts;
        Ok(PresentedSignature { credential, date, signed_headers, signature, session_token })
    }

    pub fn scope(&self) -> CredentialScope<'_> {
        let (scope, _) = CredentialScope::split(&self.credential).expect("parsing checked it");
        scope
    }

    /// The names of the signed headers: lower case, sorted and distinct.
    pub(crate) fn signed_headers(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.signed_headers.split(';').map(str::to_ascii_lowercase).collect();
        names.sort();
        // A repeated name adds its header's value again: a small request could then ask the server
        // to sign a large text.
        names.dedup();
        names
    }
}

impl<'a> CredentialScope<'a> {
    /// Splits a credential into the scope and the terminator after it.
    fn split(credential: &'a str) -> Option<(CredentialScope<'a>, &'a str)> {
        let mut elements = pieces(credential, |text| memchr(b'/', text));
        let mut next = || elements.next();
        let scope = CredentialScope {
            access_key: next()?,
            date: next()?,
            region: next()?,
            service: next()?,
        };
        let terminator = next()?;
        elements.next().is_none().then_some((scope, terminator))
    }
}

/// The texts of a signature, whether in a header or in the query.
struct Parts<'a> {
    algorithm: Cow<'a, str>,
    credential: Cow<'a, str>,
    signed_headers: Cow<'a, str>,
    signature: Cow<'a, str>,
    date: Cow<'a, str>,
    session_token: Option<Cow<'a, str>>,
    /// How many seconds a presigned request claims to be valid.
    expires: Option<Cow<'a, str>>,
}

impl<'a> Parts<'a> {
    /// Checks everything that comes after the date.
    fn check(&self, date: Timestamp, rules: &ParseRules<'_>) -> Result<(), AuthError> {
        // Names are short, so searching byte by byte takes fewer instructions than `str::split`.
        let mut signed = self.signed_headers.as_bytes().split(|byte| *byte == b';');
        if !signed.any(|name| name.eq_ignore_ascii_case(b"host")) {
            return Err(AuthError::HostNotSigned);
        }
        if self.algorithm != ALGORITHM {
            return Err(AuthError::Algorithm { given: self.algorithm.clone().into_owned() });
        }
        check_scope(&self.credential, date, &self.date, rules)
    }

    fn find(head: &RequestHead<'a>) -> Result<Parts<'a>, AuthError> {
        let query = QueryParameters::new(head.query);
        let header = head.headers.get(AUTHORIZATION).map(text);
        match (header, query.get("X-Amz-Algorithm")) {
            (Some(_), Some(_)) => Err(AuthError::TwoForms),
            (None, Some(_)) => Parts::from_query(&query),
            (Some(header), None) if header.trim_start().starts_with("AWS4-") => match header {
                Cow::Borrowed(header) => Parts::from_header(header, head.headers),
                Cow::Owned(header) => {
                    Parts::from_header(&header, head.headers).map(Parts::into_owned)
                }
            },
            _ => Err(AuthError::MissingToken),
        }
    }

    /// `header` is the Authorization header.
    fn from_header(header: &'a str, headers: &'a HeaderMap) -> Result<Parts<'a>, AuthError> {
        let words = pieces(header, |text| memchr2(b',', b' ', text));
        let mut words = words.filter(|word| !word.is_empty());
        let algorithm = words.next().unwrap_or_default().into();
        let [mut credential, mut signature, mut signed_headers] = [None; 3];
        for word in words {
            let (part, value) = if let Some(value) = word.strip_prefix("Credential=") {
                (&mut credential, value)
            } else if let Some(value) = word.strip_prefix("SignedHeaders=") {
                (&mut signed_headers, value)
            } else if let Some(value) = word.strip_prefix("Signature=") {
                (&mut signature, value)
            } else {
                continue;
            };
            // The first occurrence counts, even if it is empty.
            part.get_or_insert(value);
        }
        let given = |part: Option<&'a str>| part.filter(|value| !value.is_empty()).map(Cow::from);
        let (credential, signature) = (given(credential), given(signature));
        let signed_headers = given(signed_headers);
        let date = headers.get(&AMZ_DATE).or_else(|| headers.get(DATE)).map(text);
        let date = date.filter(|date| !date.is_empty());
        let session_token = headers.get(&SECURITY_TOKEN).map(text);
        match (credential, signature, signed_headers, date) {
            (Some(credential), Some(signature), Some(signed_headers), Some(date)) => {
                let expires = None;
                Ok(Parts {
                    algorithm,
                    credential,
                    signed_headers,
                    signature,
                    date,
                    session_token,
                    expires,
                })
            }
            (credential, signature, signed_headers, date) => {
                let missing = absent(&[
                    (HeaderPart::Credential, credential.is_some()),
                    (HeaderPart::Signature, signature.is_some()),
                    (HeaderPart::SignedHeaders, signed_headers.is_some()),
                    (HeaderPart::Date, date.is_some()),
                ]);
                Err(AuthError::IncompleteHeader { missing, header: header.to_owned() })
            }
        }
    }

    fn from_query(query: &QueryParameters) -> Result<Parts<'a>, AuthError> {
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
        let session_token = query.get("X-Amz-Security-Token").map(Cow::Owned);
        Ok(Parts {
            algorithm: algorithm.into(),
            credential: credential.into(),
            signed_headers: signed_headers.into(),
            signature: signature.into(),
            date: date.into(),
            session_token,
            expires: query.get("X-Amz-Expires").map(Cow::Owned),
        })
    }

    fn into_owned(self) -> Parts<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Parts {
            algorithm: owned(self.algorithm),
            credential: owned(self.credential),
            signed_headers: owned(self.signed_headers),
            signature: owned(self.signature),
            date: owned(self.date),
            session_token: self.session_token.map(owned),
            expires: self.expires.map(owned),
        }
    }
}

/// The pieces of a text between separators. `find` returns the position of the first separator, which must be ASCII.
fn pieces(text: &str, find: impl Fn(&[u8]) -> Option<usize>) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some(end) = find(text.as_bytes()) else { return Some(text) };
        rest = Some(&text[end + 1..]);
        Some(&text[..end])
    })
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

/// Almost every header is valid UTF-8 and can be borrowed.
fn text(value: &HeaderValue) -> Cow<'_, str> {
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(value.as_bytes()),
    }
}

/// `date_text` is the text that `date` was parsed from.
fn check_scope(
    credential: &str,
    date: Timestamp,
    date_text: &str,
    rules: &ParseRules<'_>,
) -> Result<(), AuthError> {
    let Some((scope, terminator)) = CredentialScope::split(credential) else {
        return Err(AuthError::CredentialShape { given: credential.to_owned() });
    };
    let mut faults = Vec::new();
    let region_is_valid = match rules.region {
        Some(expected) => scope.region == expected,
        None => !scope.region.is_empty(),
    };
    if !region_is_valid {
        faults.push(ScopeFault::Region { given: scope.region.to_owned() });
    }
    if rules.verifies && scope.service != rules.service {
        faults.push(ScopeFault::Service { expected: rules.service });
    }
    if terminator != TERMINATOR {
        faults.push(ScopeFault::Terminator { given: terminator.to_owned() });
    }
    if !date_text.starts_with(scope.date) || scope.date.len() != DAY_LENGTH {
        faults.push(ScopeFault::Date { given: scope.date.to_owned(), date });
    }
    if !faults.is_empty() {
        return Err(AuthError::Scope { faults });
    }
    if scope.access_key.is_empty() {
        return Err(AuthError::UnknownAccessKey);
    }
    Ok(())
}
