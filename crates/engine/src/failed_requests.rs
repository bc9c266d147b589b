//! Where the operator finds the cause of a request that failed: in the log, with the request's id.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::field::display;

use crate::error::Error;
use crate::request_id::RequestId;

/// Logs the cause of a failure that the client only hears of, unless it is in the log already.
pub fn log(error: &Error) {
    let request_id = RequestId::current().map(display);
    match error {
        _ if error.is_known_outage() => tracing::debug!(request_id, %error, "request refused"),
        // When a disk fails, all running requests fail at once.
        Error::Store(_) | Error::Unavailable { .. } if !is_time_to_log() => {
            tracing::debug!(request_id, %error, "request failed");
        }
        _ => tracing::error!(request_id, %error, "request failed"),
    }
}

/// Whether the last store failure was logged long enough ago to log another.
fn is_time_to_log() -> bool {
    const INTERVAL: Duration = Duration::from_secs(1);
    static LOGGED_AT: Mutex<Option<Instant>> = Mutex::new(None);
    let mut logged_at = LOGGED_AT.lock();
    let is_time = logged_at.is_none_or(|logged_at| logged_at.elapsed() >= INTERVAL);
    if is_time {
        *logged_at = Some(Instant::now());
    }
    is_time
}
