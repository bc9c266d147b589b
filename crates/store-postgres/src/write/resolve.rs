//! Finds out whether a transaction committed when the answer to its COMMIT was lost.
//!
//! The last statement of the transaction inserts its id. To learn the outcome, the node inserts the same id itself, as a fence. If the
//! transaction has committed, the insert finds its row. If it is still running, the insert waits until it ends. Otherwise the fence
//! keeps it from ever inserting its id: nothing was committed, and nothing will be. This works even if the session is gone or another
//! server has become the primary.
//!
//! A row that is found may exist on this server alone: if a commit waits for a standby and its session is terminated, or the server
//! restarts, the commit becomes visible without one. So the node writes after it, and waits for a standby in turn.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_postgres::error::SqlState;
use zenobe_store::Error;

use crate::pool::{Pool, PooledConnection, Purpose};
use crate::statement_error;

pub enum Resolved {
    Committed,
    NotCommitted,
    /// The store could not be reached.
    Unknown(String),
}

/// How long to ask the store.
const TIME_MAX: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(50);

pub async fn resolve(pool: &Arc<Pool>, id: &[u8]) -> Resolved {
    let deadline = Instant::now() + TIME_MAX;
    loop {
        let problem = match pool.session(Purpose::Write).await {
            Ok(connection) => match ask(&connection, id).await {
                Ok(resolved) => return resolved,
                Err(error) => statement_error::text(&error),
            },
            Err(Error::Closed) => return Resolved::Unknown("the store was closed".to_owned()),
            Err(error) => error.to_string(),
        };
        tracing::warn!(problem, "the outcome of a commit is not known yet");
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
    // As a fence too, which a sealed store accepts. Nobody looks for it, and it is removed with the others.
    let confirmation: [u8; 16] = rand::random();
    let record = &session.statements.record_commit;
    session.client.execute(record, &[&&confirmation[..], &true]).await?;
    Ok(Resolved::Committed)
}
