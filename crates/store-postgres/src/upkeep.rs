//! Periodic work: deletes the records of commits that no node will ask for any more, and measures the size of the store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use zenobe_store::Result;

use crate::dialect::Dialect;
use crate::pool::Pool;
use crate::statement_error::StatementError;

const PERIOD: Duration = Duration::from_secs(30);
/// Nodes ask for an outcome within a minute of the commit, or never.
const COMMIT_AGE_MAX_SECONDS: f64 = 3600.0;

/// Runs once, which shows that the store responds, then continues in the background.
pub async fn start(pool: &Arc<Pool>, size_bytes: &Arc<AtomicU64>) -> Result<()> {
    measure(pool, size_bytes).await?;
    let (pool, size_bytes) = (Arc::downgrade(pool), Arc::clone(size_bytes));
    if let Some(running) = pool.upgrade() {
        running.runtime.spawn(run(pool, size_bytes));
    }
    Ok(())
}

/// Ends when the store is dropped.
async fn run(pool: Weak<Pool>, size_bytes: Arc<AtomicU64>) {
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(pool) = pool.upgrade().filter(|pool| !pool.is_closed()) else { return };
        let done = match collect(&pool).await {
            Ok(()) => measure(&pool, &size_bytes).await,
            failed => failed,
        };
        if let Err(error) = done {
            tracing::warn!(%error, "the store could not be cleaned up; trying again later");
        }
    }
}

async fn collect(pool: &Arc<Pool>) -> Result<()> {
    let session = pool.reader().await?;
    let collect = &session.statements.collect_commits;
    let collected = session.client.execute(collect, &[&COMMIT_AGE_MAX_SECONDS]).await;
    collected.map(drop).map_err(|error| StatementError::from(error).into_error())
}

async fn measure(pool: &Arc<Pool>, size_bytes: &AtomicU64) -> Result<()> {
    let session = pool.reader().await?;
    if pool.dialect != Dialect::Postgres {
        return Ok(());
    }
    let query = "SELECT pg_total_relation_size('zenobe_kv')";
    let row = session.client.query_one(query, &[]).await;
    let row = row.map_err(|error| StatementError::from(error).into_error())?;
    size_bytes.store(row.get::<_, i64>(0) as u64, Ordering::Relaxed);
    Ok(())
}
