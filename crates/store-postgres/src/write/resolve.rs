//! Finds out what became of a transaction whose COMMIT was sent and not answered.
//!
//! The transaction records its id as its last statement. Whoever wants to know its outcome records the same id, as fenced. If
//! the transaction has been committed, its record is in the way. If it still runs, its record is in the way until it ends. And if it
//! has recorded nothing, it never can any more: then nothing was committed, and nothing will be. It does not matter whether the
//! session is gone, or whether another server is the primary by now.

use std::sync::Arc;

use tokio_postgres::error::SqlState;
use zenobe_store::Error;

use crate::fault;
use crate::pool::{Pool, PooledConnection, Purpose};

pub enum Resolved {
    Committed,
    NotCommitted,
    /// The store could not be asked.
    Unknown(String),
}

/// How often the store is asked. Each time waits for a connection as long as patience lasts.
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
    // It may be a fence that was recorded just before the connection was lost again.
    let row = session.client.query_one(&session.statements.find_commit, &[&id]).await?;
    Ok(if row.get(0) { Resolved::NotCommitted } else { Resolved::Committed })
}
