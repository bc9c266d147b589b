//! AWS Signature Version 4, as DynamoDB checks it.
//!
//! [`PresentedSignature::parse`] extracts a signature from a request and checks everything that
//! needs no secret; [`PresentedSignature::verify`] recomputes it. A server that accepts any
//! credentials only parses.
//!
//! **Invariant:** this crate knows HTTP heads and credentials. It knows nothing about bodies except
//! their hash, and nothing about operations or tables.

mod canonical;
mod credentials;
mod error;
mod freshness;
mod parse;
mod signing;
mod timestamp;
mod verify;

pub use credentials::{Credential, Credentials, CredentialsError};
pub use error::{AuthError, AuthErrorType, HeaderPart, ScopeFault};
pub use parse::{CredentialScope, DYNAMODB, ParseRules, PresentedSignature, RequestHead};
pub use signing::{Signer, sha256};
pub use timestamp::Timestamp;
