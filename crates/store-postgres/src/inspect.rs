//! What the store says about itself, for operators.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::Row;
use zenobe_store::{Inspection, Result, StandbyStatus};

use crate::dialect::Dialect;
use crate::pool::Pool;
use crate::standbys::Standbys;
use crate::statement_error::StatementError;

/// A user without the right to see the servers' activity gets their names and nothing else.
const STANDBYS: &str = "
    SELECT application_name, state, sync_state, CAST(pg_current_wal_flush_lsn() - replay_lsn AS int8),
           CAST(extract(epoch FROM replay_lag) * 1000 AS int8)
    FROM pg_stat_replication ORDER BY application_name";

pub async fn inspect(pool: &Arc<Pool>, standbys: Option<&Standbys>) -> Result<Inspection> {
    let failed = |error: tokio_postgres::Error| StatementError::from(error).into_error();
    let session = pool.reader().await?;
    let asked_at = Instant::now();
    let version = session.client.query_one("SELECT version()", &[]).await.map_err(failed)?;
    let round_trip = asked_at.elapsed();
    let version: String = version.get(0);
    let followers = match pool.dialect {
        Dialect::Postgres => session.client.query(STANDBYS, &[]).await.map_err(failed)?,
        Dialect::Cockroach | Dialect::Yugabyte => Vec::new(),
    };
    let behind = standbys.map(Standbys::behind).unwrap_or_default();
    Ok(Inspection {
        // What follows names the machine that it was built for.
        server: version.split(" on ").next().unwrap_or_default().to_owned(),
        host: pool.host(),
        round_trip,
        standbys: followers.iter().map(standby).collect(),
        replicas: behind,
    })
}

fn standby(row: &Row) -> StandbyStatus {
    let text = |column| row.get::<_, Option<String>>(column).unwrap_or_default();
    let number = |column| row.get::<_, Option<i64>>(column).map(|number| number.max(0) as u64);
    StandbyStatus {
        name: text(0),
        state: text(1),
        is_synchronous: matches!(text(2).as_str(), "sync" | "quorum"),
        lag_bytes: number(3),
        lag: number(4).map(Duration::from_millis),
    }
}
