//! Sealing a store: no node can commit anything until the seal is removed.
//!
//! Every transaction of a write ends by recording its id in `zenobe_commit`. A constraint on that table refuses the record, and
//! with it the transaction, whichever node sent it and whenever it began. The constraint and the row that gives the reason are one
//! transaction. Outcomes of earlier commits can still be resolved.

use std::sync::Arc;

use tokio_postgres::Error as PgError;
use zenobe_store::Result;

use crate::keys::{Digest, head, whole};
use crate::pool::{Pool, Purpose};
use crate::sql::Session;
use crate::statement_error::StatementError;

/// Its name is in the message that a node gets.
const REFUSE: &str =
    "ALTER TABLE zenobe_commit DROP CONSTRAINT IF EXISTS zenobe_was_moved_elsewhere;
    ALTER TABLE zenobe_commit ADD CONSTRAINT zenobe_was_moved_elsewhere CHECK (fenced) NOT VALID";
const ACCEPT: &str =
    "ALTER TABLE zenobe_commit DROP CONSTRAINT IF EXISTS zenobe_was_moved_elsewhere";

pub async fn seal(pool: &Arc<Pool>, key: &[u8], value: Option<&[u8]>) -> Result<()> {
    let mut lease = pool.session(Purpose::Write).await?;
    lease.begin_write();
    let sealed = transact(lease.session(), key, value).await;
    sealed.map_err(|error| StatementError::from(error).into_error())?;
    lease.ended();
    Ok(())
}

async fn transact(session: &Session, key: &[u8], value: Option<&[u8]>) -> Result<(), PgError> {
    let digest = Digest::of(key);
    let (heads, digests) = (vec![head(key)], vec![digest.bytes()]);
    let Session { client, statements } = session;
    match value {
        Some(value) => {
            let (wholes, values) = (vec![whole(key)], vec![Some(value)]);
            let revision: i64 = rand::random();
            let put = &statements.put;
            client.execute(put, &[&heads, &digests, &wholes, &values, &revision]).await?;
            client.batch_execute(REFUSE).await?;
        }
        None => {
            client.execute(&statements.delete, &[&heads, &digests]).await?;
            client.batch_execute(ACCEPT).await?;
        }
    }
    client.batch_execute("COMMIT").await
}
