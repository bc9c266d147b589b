//! Reads of keys: one statement on a shared connection. `gather` decides which reads share it.

use std::sync::Arc;

use tokio_postgres::{Error as PgError, Row};
use zenobe_store::{Key, LogEnd, Result, Value};

use crate::keys::{Digest, head};
use crate::pool::Pool;
use crate::rows::Read;
use crate::sql::Session;

/// The column after those of a value: the index of the key.
const POSITION: usize = 4;

pub async fn get_row(session: &Session, key: &[u8]) -> Result<Read, PgError> {
    let digest = Digest::of(key);
    let statement = &session.statements.get;
    let rows = session.client.query(statement, &[&head(key), &digest.bytes()]).await?;
    Ok(Read::of(rows.iter()))
}

/// All keys, read from one state by a statement of their own.
pub async fn read_now(pool: &Arc<Pool>, keys: &[Key]) -> Result<Vec<Read>> {
    let patience = pool.patience();
    loop {
        let session = pool.reader().await?;
        match pool.in_time(get_rows(&session, keys)).await {
            Ok(reads) => return Ok(reads),
            Err(error) => patience.bear(pool, &session, error)?,
        }
    }
}

pub async fn get_rows(session: &Session, keys: &[Key]) -> Result<Vec<Read>, PgError> {
    if let [key] = keys {
        return Ok(vec![get_row(session, key).await?]);
    }
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let heads: Vec<&[u8]> = keys.iter().map(|key| head(key)).collect();
    let digests: Vec<Digest> = keys.iter().map(|key| Digest::of(key)).collect();
    let digests: Vec<&[u8]> = digests.iter().map(Digest::bytes).collect();
    let positions: Vec<i32> = (0..keys.len() as i32).collect();
    let statement = &session.statements.get_many;
    let mut rows = session.client.query(statement, &[&heads, &digests, &positions]).await?;
    let position = |row: &Row| row.get::<_, i32>(POSITION);
    rows.sort_by_key(position);
    let mut reads = vec![Read::absent(); keys.len()];
    for rows in rows.chunk_by(|left, right| position(left) == position(right)) {
        reads[position(&rows[0]) as usize] = Read::of(rows.iter());
    }
    Ok(reads)
}

/// The ends of logs from a key on.
pub async fn log_ends(
    pool: &Arc<Pool>,
    start: &[u8],
    count_max: usize,
) -> Result<Vec<(Key, LogEnd)>> {
    let patience = pool.patience();
    let count_max = i64::try_from(count_max).unwrap_or(i64::MAX);
    loop {
        let session = pool.reader().await?;
        let list = &session.statements.list_logs;
        match pool.in_time(session.client.query(list, &[&start, &count_max])).await {
            Ok(rows) => return Ok(rows.iter().map(log_end).collect()),
            Err(error) => patience.bear(pool, &session, error)?,
        }
    }
}

fn log_end(row: &Row) -> (Key, LogEnd) {
    let (log, sequence, stamp): (&[u8], i64, i64) = (row.get(0), row.get(1), row.get(2));
    (Key::copy_from_slice(log), LogEnd { sequence: sequence as u64, stamp: stamp as u64 })
}

pub fn values(reads: Vec<Read>) -> Vec<Option<Value>> {
    reads.into_iter().map(|read| read.value).collect()
}
