//! Every reason to reject a signature, and the one place that holds the texts.

use std::fmt;

use crate::freshness::EXPIRES_SECONDS_MAX;
use crate::timestamp::Timestamp;

/// The longest canonical text that an error shows. Anybody can provoke an error, so it must stay
/// cheap.
const SHOWN_SIZE_BYTES_MAX: usize = 4 * 1024;

/// The `__type` of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthErrorType {
    MissingAuthenticationToken,
    IncompleteSignature,
    InvalidSignature,
    UnrecognizedClient,
}

impl AuthErrorType {
    pub fn name(self) -> &'static str {
        match self {
            AuthErrorType::MissingAuthenticationToken => "MissingAuthenticationTokenException",
            AuthErrorType::IncompleteSignature => "IncompleteSignatureException",
            AuthErrorType::InvalidSignature => "InvalidSignatureException",
            AuthErrorType::UnrecognizedClient => "UnrecognizedClientException",
        }
    }
}

/// A rejected signature. `Display` gives the message that a client sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthError {
    /// The request is signed both in a header and in its query.
    TwoForms,
    MissingToken,
    /// The parts that the Authorization header (or the date header) lacks, and the header as sent.
    IncompleteHeader {
        missing: Vec<HeaderPart>,
        header: String,
    },
    /// Query parameters that are missing or empty.
    IncompleteQuery {
        missing: Vec<&'static str>,
    },
    DateFormat {
        given: String,
    },
    /// X-Amz-Expires is not a valid number of seconds.
    Expires {
        given: String,
    },
    Expired {
        date: Timestamp,
        now: Timestamp,
        /// How long a signature with this date is valid.
        valid_seconds: i64,
    },
    NotYetCurrent {
        date: Timestamp,
        now: Timestamp,
    },
    HostNotSigned,
    /// The signature does not cover one of AWS's own headers.
    HeaderNotSigned {
        name: String,
    },
    Algorithm {
        given: String,
    },
    CredentialShape {
        given: String,
    },
    /// Holds at least one fault.
    Scope {
        faults: Vec<ScopeFault>,
    },
    UnknownAccessKey,
    /// Shows what should have been signed. That is no secret, and it is what a client's author
    /// needs.
    SignatureMismatch {
        canonical_request: String,
        string_to_sign: String,
    },
    SessionToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderPart {
    Credential,
    Signature,
    SignedHeaders,
    Date,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopeFault {
    Region { given: String },
    Service { expected: &'static str },
    Terminator { given: String },
    Date { given: String, date: Timestamp },
}

impl AuthError {
    pub fn error_type(&self) -> AuthErrorType {
        match self {
            AuthError::MissingToken => AuthErrorType::MissingAuthenticationToken,
            AuthError::IncompleteHeader { .. }
            | AuthError::IncompleteQuery { .. }
            | AuthError::DateFormat { .. }
            | AuthError::Expires { .. }
            | AuthError::Algorithm { .. }
            | AuthError::CredentialShape { .. } => AuthErrorType::IncompleteSignature,
            AuthError::TwoForms
            | AuthError::Expired { .. }
            | AuthError::NotYetCurrent { .. }
            | AuthError::HostNotSigned
            | AuthError::HeaderNotSigned { .. }
            | AuthError::Scope { .. }
            | AuthError::SignatureMismatch { .. } => AuthErrorType::InvalidSignature,
            AuthError::UnknownAccessKey | AuthError::SessionToken => {
                AuthErrorType::UnrecognizedClient
            }
        }
    }
}

impl std::error::Error for AuthError {}

impl fmt::Display for AuthError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuthError::TwoForms => out.write_str(
                "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.",
            ),
            AuthError::MissingToken => out.write_str("Request is missing Authentication Token"),
            AuthError::IncompleteHeader { missing, header } => {
                missing.iter().try_for_each(|part| out.write_str(part.sentence()))?;
                write!(out, "Authorization={header}")
            }
            AuthError::IncompleteQuery { missing } => {
                for name in missing {
                    write!(out, "AWS query-string parameters must include '{name}'. ")?;
                }
                out.write_str("Re-examine the query-string parameters.")
            }
            AuthError::DateFormat { given } => write!(
                out,
                "Date must be in ISO-8601 'basic format'. Got '{given}'. See http://en.wikipedia.org/wiki/ISO_8601"
            ),
            AuthError::Expires { given } => write!(
                out,
                "X-Amz-Expires must be a number of seconds from 1 to {EXPIRES_SECONDS_MAX}. Got '{given}'."
            ),
            AuthError::Expired { date, now, valid_seconds } => {
                let limit = now.minus_seconds(*valid_seconds);
                write!(out, "Signature expired: {date} is now earlier than {limit} ({now} - ")?;
                match valid_seconds % 60 {
                    0 => write!(out, "{} min.)", valid_seconds / 60),
                    _ => write!(out, "{valid_seconds} sec.)"),
                }
            }
            AuthError::NotYetCurrent { date, now } => {
                let limit = now.plus_skew();
                write!(
                    out,
                    "Signature not yet current: {date} is still later than {limit} ({now} + 15 min.)"
                )
            }
            AuthError::HostNotSigned => {
                out.write_str("'Host' must be a 'SignedHeader' in the AWS Authorization.")
            }
            AuthError::HeaderNotSigned { name } => {
                write!(out, "'{name}' must be a 'SignedHeader' in the AWS Authorization.")
            }
            AuthError::Algorithm { given } => write!(
                out,
                "Unsupported AWS 'algorithm': '{given}' (only AWS4-HMAC-SHA256 for now). "
            ),
            AuthError::CredentialShape { given } => write!(
                out,
                "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '{given}'"
            ),
            AuthError::Scope { faults } => faults.iter().try_for_each(|fault| fault.fmt(out)),
            AuthError::UnknownAccessKey => {
                out.write_str("The security token included in the request is invalid.")
            }
            AuthError::SessionToken => {
                out.write_str("The security token included in the request is invalid")
            }
            AuthError::SignatureMismatch { canonical_request, string_to_sign } => {
                out.write_str(
                    "The request signature we calculated does not match the signature you provided. \
                     Check your AWS Secret Access Key and signing method. \
                     Consult the service documentation for details.",
                )?;
                if canonical_request.len() > SHOWN_SIZE_BYTES_MAX {
                    return Ok(());
                }
                write!(
                    out,
                    "\n\nThe Canonical String for this request should have been\n'{canonical_request}'\n\n\
                     The String-to-Sign should have been\n'{string_to_sign}'\n"
                )
            }
        }
    }
}

impl HeaderPart {
    fn sentence(self) -> &'static str {
        match self {
            HeaderPart::Credential => "Authorization header requires 'Credential' parameter. ",
            HeaderPart::Signature => "Authorization header requires 'Signature' parameter. ",
            HeaderPart::SignedHeaders => {
                "Authorization header requires 'SignedHeaders' parameter. "
            }
            HeaderPart::Date => {
                "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "
            }
        }
    }
}

impl fmt::Display for ScopeFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScopeFault::Region { given } => {
                write!(out, "Credential should be scoped to a valid region, not '{given}'. ")
            }
            ScopeFault::Service { expected } => {
                write!(out, "Credential should be scoped to correct service: '{expected}'. ")
            }
            ScopeFault::Terminator { given } => write!(
                out,
                "Credential should be scoped with a valid terminator: 'aws4_request', not '{given}'. "
            ),
            ScopeFault::Date { given, date } => write!(
                out,
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: \
                 '{given}' != '{}', from '{date}'.",
                date.day()
            ),
        }
    }
}
