//! Periodic work: deletes the records of commits that no node will ask for any more, and measures the size of the store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use zenobe_store::Result;

use crate::dialect::Dialect;
use crate::pool::{Pool, Purpose};
use crate::sql::Session;
use crate::statement_error::StatementError;

const PERIOD: Duration = Duration::from_secs(30);
/// How often one of the nodes that share the store collects records of commits. That reads all of
/// them: an index of their times would cost something in every commit.
const COLLECTION_PERIOD_SECONDS: f64 = 60.0;
/// How old a record must be to be collected, by the store's clock.
const COMMIT_AGE_MAX_SECONDS: f64 = 600.0;
/// How long after its transaction began a node relies on a commit's record. It is half of the age at which records are collected; the
/// margin is for clocks that run at different rates.
pub const RECORD_KEPT_MIN: Duration = Duration::from_secs(300);

/// Measures once, which shows that the store responds, then continues in the background.
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
        let collected = collect(&pool).await;
        if let Err(error) = collected.and(measure(&pool, &size_bytes).await) {
            tracing::warn!(%error, "periodic work on the store failed; trying again later");
        }
    }
}

/// Deletes old records, unless a node has done so a moment ago.
async fn collect(pool: &Arc<Pool>) -> Result<()> {
    // Not on a connection for reads: they would wait for this, which waits for a standby.
    let connection = pool.session(Purpose::View).await?;
    let Session { client, statements } = connection.session();
    let in_time = async |statement, parameter: &f64| {
        let executed = pool.in_time(client.execute(statement, &[parameter])).await;
        // A statement without an answer may hold a row that other nodes wait for.
        executed.inspect_err(|_| connection.discard()).map_err(StatementError::into_error)
    };
    let claimed = in_time(&statements.claim_collection, &COLLECTION_PERIOD_SECONDS).await?;
    if claimed > 0 {
        in_time(&statements.collect_commits, &COMMIT_AGE_MAX_SECONDS).await?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use zenobe_store::conformance::block_on;
    use zenobe_testing::Postgres;

    use super::*;
    use crate::{Options, PostgresStore};

    #[test]
    fn one_node_in_a_period_collects_old_records_and_no_others() {
        let server = Postgres::shared();
        let url = server.database();
        let open = || block_on(PostgresStore::open(&url, Options::default())).expect("it opens");
        let nodes = [open(), open()];
        let database = url.rsplit('/').next().unwrap().split('?').next().unwrap();
        let record = |id: &str, age_minutes: u32| {
            server.execute(
                database,
                &format!(
                    "INSERT INTO zenobe_commit VALUES ('{id}', false, now() - interval '{age_minutes} minutes')"
                ),
            );
        };
        let left = || {
            let ids = "SELECT convert_from(id, 'UTF8') FROM zenobe_commit WHERE length(id) = 16 ORDER BY id";
            server.execute(database, ids).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let collect = |node: &PostgresStore| block_on(collect(&node.pool)).expect("it collects");

        record("younger_________", 9);
        record("older___________", 11);
        collect(&nodes[0]);
        assert_eq!(left(), ["younger_________"]);
        record("older___________", 11);
        server.execute(database, "UPDATE zenobe_commit SET at = now() WHERE id = 'collected'");
        nodes.iter().for_each(collect);
        assert_eq!(left().len(), 2, "it was done a moment ago");
        let past =
            "UPDATE zenobe_commit SET at = at - interval '61 seconds' WHERE id = 'collected'";
        server.execute(database, past);
        collect(&nodes[1]);
        assert_eq!(left(), ["younger_________"]);
    }
}
