//! Finds out whether a transaction committed when the answer to its COMMIT was lost.
//!
//! The last statement of the transaction inserts its id. To learn the outcome, the node inserts the same id itself, as a fence. If the
//! transaction has committed, the insert finds its row. If it is still running, the insert waits until it ends. Otherwise the fence
//! keeps it from ever inserting its id: nothing was committed, and nothing will be. This works even if the session is gone or another
//! server has become the primary.
//!
//! A row that is found may exist on this server alone: if a commit waits for a standby and its session is terminated, or the server
//! restarts, the commit becomes visible without one. So the node writes after it, and waits for a standby in turn.
//!
//! Records are collected after a while ([`crate::upkeep`]). A node that stood still for that long may not find the record of a transaction
//! that has committed. Then a fence proves nothing, and the outcome stays unknown.

use std::sync::Arc;
use std::time::{self, Duration, SystemTime};

use tokio::time::{Instant, sleep};
use tokio_postgres::error::SqlState;
use zenobe_store::Error;

use crate::pool::{Pool, PooledConnection, Purpose};
use crate::statement_error;
use crate::upkeep::RECORD_KEPT_MIN;

pub enum Resolved {
    Committed,
    NotCommitted,
    /// The store could not be reached, or no longer knows.
    Unknown(String),
}

/// When a transaction began, by both clocks of the machine: one stands still while the machine is suspended, the other can be set.
pub struct Begun {
    monotonic: time::Instant,
    wall: SystemTime,
}

impl Begun {
    pub fn now() -> Begun {
        Begun { monotonic: time::Instant::now(), wall: SystemTime::now() }
    }

    /// Whether the record of the transaction is still there, if there ever was one. A wall clock that was set back says nothing.
    fn is_record_kept(&self) -> bool {
        let by_wall = self.wall.elapsed().unwrap_or_default();
        self.monotonic.elapsed().max(by_wall) < RECORD_KEPT_MIN
    }
}

/// How long to ask the store.
const TIME_MAX: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(50);

pub async fn resolve(pool: &Arc<Pool>, id: &[u8], begun: &Begun) -> Resolved {
    let deadline = Instant::now() + TIME_MAX;
    let mut is_logged = false;
    loop {
        let problem = match pool.session(Purpose::Write).await {
            Ok(connection) => match ask(&connection, id).await {
                // Checked after the fence, so that no record was collected before it.
                Ok(Resolved::NotCommitted) if !begun.is_record_kept() => {
                    let detail = "the answer came too late: the record of the commit may be gone";
                    return Resolved::Unknown(detail.to_owned());
                }
                Ok(resolved) => return resolved,
                Err(error) => statement_error::text(&error),
            },
            Err(Error::Closed) => return Resolved::Unknown("the store was closed".to_owned()),
            Err(error) => error.to_string(),
        };
        // Log it once: the loop may ask many times while the store is away.
        if !std::mem::replace(&mut is_logged, true) {
            tracing::warn!(problem, "the outcome of a commit is not known yet");
        }
        if Instant::now() >= deadline {
            return Resolved::Unknown(problem);
        }
        sleep(RETRY_PAUSE).await;
    }
}

async fn ask(connection: &PooledConnection, id: &[u8]) -> Result<Resolved, tokio_postgres::Error> {
    let session = connection.session();
    let fenced = session.client.execute(&session.statements.record_commit, &[&id, &true]).await;
    match fenced {
        Ok(_) => return Ok(Resolved::NotCommitted),
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {}
        Err(error) => return Err(error),
    }
    // It may be a fence of an earlier attempt, whose connection was lost as well.
    let row = session.client.query_one(&session.statements.find_commit, &[&id]).await?;
    if row.get(0) {
        return Ok(Resolved::NotCommitted);
    }
    // Written as a fence, because a sealed store accepts fences. Nobody looks it up; it is collected like the others.
    let confirmation: [u8; 16] = rand::random();
    let record = &session.statements.record_commit;
    session.client.execute(record, &[&&confirmation[..], &true]).await?;
    Ok(Resolved::Committed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_clock_tells_that_a_record_may_be_gone() {
        let now = Begun::now();
        assert!(now.is_record_kept());
        let by_wall = Begun { wall: now.wall - RECORD_KEPT_MIN, ..now };
        assert!(!by_wall.is_record_kept());
        let set_back = Begun { wall: SystemTime::now() + RECORD_KEPT_MIN, ..Begun::now() };
        assert!(set_back.is_record_kept());
        if let Some(monotonic) = time::Instant::now().checked_sub(RECORD_KEPT_MIN) {
            assert!(!Begun { monotonic, ..set_back }.is_record_kept());
        }
    }
}
