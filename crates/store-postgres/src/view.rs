//! Scans and snapshots: one state of the store, read on an exclusive connection.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, try_join};
use parking_lot::Mutex;
use zenobe_store::{Direction, Error, Key, KeyRange, Reader, Result, Value, Visitor};

use crate::fault::Fault;
use crate::pool::{Pool, PooledConnection, Purpose};
use crate::read::{get_row, get_rows, values};
use crate::scan::{FIRST_PAGE_ROWS, Scan, holds};

/// Scans with a higher limit run in a transaction from the start.
const SINGLE_STATEMENT_ENTRIES_MAX: usize = 1000;

/// Scans the current state, and reads `keys` in the same round trip.
pub async fn scan(
    pool: &Arc<Pool>,
    range: KeyRange,
    direction: Direction,
    entries_max: Option<usize>,
    visit: &mut Visitor<'_>,
    keys: &[Key],
) -> Result<Vec<Option<Value>>> {
    let mut left = entries_max.unwrap_or(usize::MAX);
    let has_visited = AtomicBool::new(false);
    let mut counted = |key: &[u8], value: &[u8]| {
        has_visited.store(true, Ordering::Relaxed);
        left -= 1;
        let flow = visit(key, value);
        if left == 0 { ControlFlow::Break(()) } else { flow }
    };
    let patience = pool.patience();
    loop {
        let fault = match scan_once(pool, &range, direction, entries_max, &mut counted, keys).await
        {
            Ok(values) => return Ok(values),
            Err(ScanError::Store(error)) => return Err(error),
            Err(ScanError::Fault(fault)) => fault,
        };
        match fault {
            // The visitor has seen entries, and the rest would be from another state.
            Fault::Lost(detail) if !has_visited.load(Ordering::Relaxed) => {
                patience.bear_loss(detail)?;
            }
            fault => return Err(fault.into_error()),
        }
    }
}

enum ScanError {
    Fault(Fault),
    Store(Error),
}

impl From<tokio_postgres::Error> for ScanError {
    fn from(error: tokio_postgres::Error) -> ScanError {
        ScanError::Fault(error.into())
    }
}

impl From<Error> for ScanError {
    fn from(error: Error) -> ScanError {
        ScanError::Store(error)
    }
}

async fn scan_once(
    pool: &Arc<Pool>,
    range: &KeyRange,
    direction: Direction,
    entries_max: Option<usize>,
    visit: &mut Visitor<'_>,
    keys: &[Key],
) -> Result<Vec<Option<Value>>, ScanError> {
    if range.is_empty() || entries_max == Some(0) {
        let session = pool.reader().await?;
        return Ok(values(get_rows(&session, keys).await?));
    }
    // A single statement reads one state, so it suffices if one page holds everything.
    if let Some(entries) = entries_max.filter(|entries| *entries <= SINGLE_STATEMENT_ENTRIES_MAX) {
        let session = pool.reader().await?;
        let scan = Scan { session: &session, direction };
        let rows_max = entries + 1;
        let (page, reads) = try_join(scan.page(range, rows_max), get_rows(&session, keys)).await?;
        if holds(&page, rows_max, entries) {
            scan.run(range.clone(), page, rows_max, visit).await?;
            return Ok(values(reads));
        }
    }
    let mut connection = pool.session(Purpose::View).await?;
    connection.begin_view();
    let scan = Scan { session: connection.session(), direction };
    let (page, reads) =
        try_join(scan.page(range, FIRST_PAGE_ROWS), get_rows(connection.session(), keys)).await?;
    scan.run(range.clone(), page, FIRST_PAGE_ROWS, visit).await?;
    Ok(values(reads))
}

/// A snapshot. Its transaction begins with the first read, and ends when it is dropped or too old.
pub struct Snapshot {
    pool: Arc<Pool>,
    age_max: Duration,
    state: Arc<Mutex<ViewState>>,
    beginning: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
enum ViewState {
    New,
    Open(Arc<PooledConnection>),
    Ended(Error),
}

impl Snapshot {
    /// With an error if the store is closed.
    pub fn new(pool: Arc<Pool>, age_max: Duration, refused: Option<Error>) -> Snapshot {
        let state = refused.map_or(ViewState::New, ViewState::Ended);
        let state = Arc::new(Mutex::new(state));
        Snapshot { pool, age_max, state, beginning: tokio::sync::Mutex::default() }
    }

    async fn connection(&self) -> Result<Arc<PooledConnection>> {
        let state = self.state.lock().clone();
        match state {
            ViewState::Open(connection) => return Ok(connection),
            ViewState::Ended(error) => return Err(error),
            ViewState::New => {}
        }
        let _beginning = self.beginning.lock().await;
        if let ViewState::Open(connection) = &*self.state.lock() {
            return Ok(Arc::clone(connection));
        }
        let mut connection = self.pool.session(Purpose::View).await?;
        connection.begin_view();
        let connection = Arc::new(connection);
        *self.state.lock() = ViewState::Open(Arc::clone(&connection));
        self.end_in_time();
        Ok(connection)
    }

    /// Limits how long a snapshot can hold a connection, and keep the store from removing old versions.
    fn end_in_time(&self) {
        let (state, age_max) = (Arc::downgrade(&self.state), self.age_max);
        self.pool.runtime.spawn(async move {
            tokio::time::sleep(age_max).await;
            if let Some(state) = state.upgrade() {
                let detail = format!("the snapshot is older than {} s", age_max.as_secs());
                *state.lock() = ViewState::Ended(Error::Unavailable { detail });
            }
        });
    }
}

fn failed(error: tokio_postgres::Error) -> Error {
    Fault::from(error).into_error()
}

impl Reader for Snapshot {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move {
            let connection = self.connection().await?;
            Ok(get_row(connection.session(), key).await.map_err(failed)?.value)
        }
        .boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move {
            let connection = self.connection().await?;
            Ok(values(get_rows(connection.session(), keys).await.map_err(failed)?))
        }
        .boxed()
    }

    fn scan_then_get<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        entries_max: Option<usize>,
        visit: &'a mut Visitor<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move {
            let connection = self.connection().await?;
            let session = connection.session();
            if range.is_empty() || entries_max == Some(0) {
                return Ok(values(get_rows(session, keys).await.map_err(failed)?));
            }
            let mut left = entries_max.unwrap_or(usize::MAX);
            let mut counted = |key: &[u8], value: &[u8]| {
                left -= 1;
                let flow = visit(key, value);
                if left == 0 { ControlFlow::Break(()) } else { flow }
            };
            let scan = Scan { session, direction };
            let rows_max = entries_max.map_or(FIRST_PAGE_ROWS, |entries| {
                entries.saturating_add(1).min(FIRST_PAGE_ROWS * 8)
            });
            let (page, reads) = try_join(scan.page(&range, rows_max), get_rows(session, keys))
                .await
                .map_err(failed)?;
            scan.run(range, page, rows_max, &mut counted).await.map_err(failed)?;
            Ok(values(reads))
        }
        .boxed()
    }
}
