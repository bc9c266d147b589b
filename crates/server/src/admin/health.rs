//! Health checks: the server is live while it responds, and ready while it reads and writes.

use std::sync::Arc;
use std::time::Duration;

use hyper::{Method, StatusCode};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use zenobe_engine::Engine;
use zenobe_engine::error::Result;

use super::HEALTH_PATH;
use crate::http::response::HttpAnswer;

/// How long a result stays valid. Each check is a write.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long a read or a write may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

pub struct Health {
    engine: Arc<Engine>,
    /// The last result and its time. The check holds the lock, so that others wait for its result.
    last: Mutex<Option<(Instant, Checked)>>,
}

#[derive(Debug, Clone, Copy)]
struct Checked {
    reads: bool,
    writes: bool,
}

/// What is known of the server without asking its store.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerState {
    /// Whether the store refuses writes until it has recovered.
    pub is_recovering: bool,
    /// Whether the server is about to stop.
    pub is_draining: bool,
}

impl Health {
    pub fn new(engine: Arc<Engine>) -> Health {
        Health { engine, last: Mutex::default() }
    }

    pub async fn answer(&self, method: &Method, path: &str, state: ServerState) -> HttpAnswer {
        let refuse = |status, error| HttpAnswer::json(status, &json!({ "error": error }));
        if ![Method::GET, Method::HEAD].contains(method) {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "this path takes GET and HEAD");
        }
        match path.strip_prefix(HEALTH_PATH).unwrap_or_default() {
            "live" => HttpAnswer::json(StatusCode::OK, &json!({ "live": true })),
            "ready" => self.answer_ready(state).await,
            _ => refuse(StatusCode::NOT_FOUND, "there are /_zenobe/health/live and …/ready"),
        }
    }

    async fn answer_ready(&self, state: ServerState) -> HttpAnswer {
        let ServerState { is_recovering, is_draining } = state;
        if is_draining {
            let states = json!({ "ready": false, "draining": true });
            return HttpAnswer::json(StatusCode::SERVICE_UNAVAILABLE, &states);
        }
        let Checked { reads, writes } = self.check(is_recovering).await;
        let ready = reads && writes;
        let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let word = |works| if works { "ok" } else { "failing" };
        let store = match (is_recovering, reads || writes) {
            (true, _) => "recovering",
            (false, true) => "open",
            (false, false) => "unavailable",
        };
        let states = json!({
            "ready": ready, "reads": word(reads), "writes": word(writes), "store": store,
        });
        HttpAnswer::json(status, &states)
    }

    async fn check(&self, is_recovering: bool) -> Checked {
        let mut last = self.last.lock().await;
        if let Some((at, checked)) = *last
            && at.elapsed() < CHECK_INTERVAL
            // Writes that worked a moment ago may be refused by now.
            && !(checked.writes && is_recovering)
        {
            return checked;
        }
        let works = |outcome: std::result::Result<Result<()>, _>| matches!(outcome, Ok(Ok(())));
        let read = timeout(CHECK_TIMEOUT, self.engine.check_reads());
        let write = async {
            // No need to try a write that the store refuses.
            !is_recovering && works(timeout(CHECK_TIMEOUT, self.engine.check_writes()).await)
        };
        // Both at once, to answer before the caller's own timeout.
        let (read, writes) = tokio::join!(read, write);
        let checked = Checked { reads: works(read), writes };
        *last = Some((Instant::now(), checked));
        checked
    }
}
