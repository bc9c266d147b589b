//! How old a signature may be.

use std::time::SystemTime;

use crate::error::AuthError;
use crate::timestamp::{SKEW_MAX_SECONDS, Timestamp};

/// The longest validity of a presigned request.
pub(crate) const EXPIRES_SECONDS_MAX: i64 = 7 * 24 * 60 * 60;

/// When a request was signed, and how long the signature is valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Freshness {
    date: Timestamp,
    valid_seconds: i64,
}

impl Freshness {
    /// `expires` is the value in a presigned request: a number of seconds, a week at most.
    pub fn new(date: Timestamp, expires: Option<&str>) -> Result<Freshness, AuthError> {
        let valid_seconds = match expires {
            None => SKEW_MAX_SECONDS,
            Some(given) => given
                .parse()
                .ok()
                .filter(|seconds| (1..=EXPIRES_SECONDS_MAX).contains(seconds))
                .ok_or_else(|| AuthError::Expires { given: given.to_owned() })?,
        };
        Ok(Freshness { date, valid_seconds })
    }

    pub fn check(self, now: fn() -> SystemTime) -> Result<(), AuthError> {
        let Freshness { date, valid_seconds } = self;
        let now = Timestamp::from_system_time(now());
        if date < now.minus_seconds(valid_seconds) {
            return Err(AuthError::Expired { date, now, valid_seconds });
        }
        if date > now.plus_skew() {
            return Err(AuthError::NotYetCurrent { date, now });
        }
        Ok(())
    }
}
