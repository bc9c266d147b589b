//! Finds out whether a transaction committed whose COMMIT was sent and not answered.
//!
//! The last statement of the transaction inserts its id. To learn the outcome, the node inserts the same id itself, as a fence. If the
//! transaction has committed, the insert finds its row. If it is still running, the insert waits until it ends. Otherwise the fence
//! keeps it from ever inserting its id: nothing was committed, and nothing will be. This works even if the session is gone or another
//! server has become the primary.

use std::sync::Arc;

use tokio_postgres::error::SqlState;
use zenobe_store::Error;

use crate::fault;
use crate::pool::{Pool, PooledConnection, Purpose};

pub enum Resolved {
    Committed,
    NotCommitted,
    /// The store could not be reached.
    Unknown(String),
}

/// How often to ask the store. Each attempt waits for a connection as long as a request does.
const TRIES: u32 = 6;

pub async fn resolve(pool: &Arc<Pool>, id: &[u8]) -> Resolved {
    let mut problem = String::new();
    for _ in 0..TRIES {
        match pool.session(Purpose::Write).await {
            Ok(connection) => match ask(&connection, id).await {
                Ok(resolved) => return resolved,
                Err(error) => problem = fault::text(&error),
            },
            Err(Error::Closed) => return Resolved::Unknown("the store was closed".to_owned()),
            Err(error) => problem = error.to_string(),
        }
        tracing::warn!(problem, "the outcome of a commit is not known yet");
    }
    Resolved::Unknown(problem)
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
    Ok(if row.get(0) { Resolved::NotCommitted } else { Resolved::Committed })
}
