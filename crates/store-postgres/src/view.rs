//! Scans and snapshots: one state of the store, read on an exclusive connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, try_join};
use parking_lot::Mutex;
use tokio_postgres::Error as PgError;
use zenobe_store::{
    Direction, Error, Key, KeyRange, Reader, Result, Value, Visitor, first_entries,
};

use crate::pool::{Pool, PooledConnection, Purpose};
use crate::read::{get_row, get_rows, values};
use crate::scan::{FIRST_PAGE_ROWS, Scan, holds};
use crate::sql::Session;
use crate::statement_error::StatementError;

/// Scans with a higher limit run in a transaction from the start.
const SINGLE_STATEMENT_ENTRIES_MAX: usize = 1000;

/// Which states a store shows to statements that run one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum States {
    /// Always the present one, so what a later statement finds unchanged was the same before.
    Rising,
    /// Those of a standby, which may reach the state that the reader knows only between two statements.
    Behind,
}

/// Scans the current state, and reads `keys` in the same round trip.
pub async fn scan(
    pool: &Arc<Pool>,
    states: States,
    range: KeyRange,
    direction: Direction,
    entries_max: Option<usize>,
    visit: &mut Visitor<'_>,
    keys: &[Key],
) -> Result<Vec<Option<Value>>> {
    let has_visited = AtomicBool::new(false);
    let mut visit = first_entries(entries_max, visit);
    let mut noted = |key: &[u8], value: &[u8]| {
        has_visited.store(true, Ordering::Relaxed);
        visit(key, value)
    };
    let patience = pool.patience();
    loop {
        let scanned = scan_once(pool, states, &range, direction, entries_max, &mut noted, keys);
        let error = match scanned.await {
            Ok(values) => return Ok(values),
            Err(ScanError::Store(error)) => return Err(error),
            Err(ScanError::Statement(error)) => error,
        };
        match error {
            // The visitor has seen entries, and the rest would be from another state.
            StatementError::Lost(detail) if !has_visited.load(Ordering::Relaxed) => {
                patience.bear_loss(detail)?;
            }
            error => return Err(error.into_error()),
        }
    }
}

enum ScanError {
    Statement(StatementError),
    Store(Error),
}

impl From<StatementError> for ScanError {
    fn from(error: StatementError) -> ScanError {
        ScanError::Statement(error)
    }
}

impl From<Error> for ScanError {
    fn from(error: Error) -> ScanError {
        ScanError::Store(error)
    }
}

async fn scan_once(
    pool: &Arc<Pool>,
    states: States,
    range: &KeyRange,
    direction: Direction,
    entries_max: Option<usize>,
    visit: &mut Visitor<'_>,
    keys: &[Key],
) -> Result<Vec<Option<Value>>, ScanError> {
    if range.is_empty() || entries_max == Some(0) {
        let session = pool.reader().await?;
        let reads = pool.in_time(get_rows(&session, keys)).await;
        return Ok(values(reads.inspect_err(|error| discard(pool, &session, error))?));
    }
    // A single statement reads one state, so it suffices if one page holds everything.
    if states == States::Rising
        && let Some(entries) =
            entries_max.filter(|entries| *entries <= SINGLE_STATEMENT_ENTRIES_MAX)
    {
        let session = pool.reader().await?;
        let scan = Scan { pool, session: &session, direction };
        let rows_max = entries + 1;
        let read = try_join(scan.page(range, rows_max), pool.in_time(get_rows(&session, keys)));
        let read = read.await.inspect_err(|error| discard(pool, &session, error));
        let (page, reads) = read?;
        if holds(&page, rows_max, entries) {
            scan.run(range.clone(), page, rows_max, visit).await?;
            return Ok(values(reads));
        }
    }
    let mut connection = pool.session(Purpose::View).await?;
    connection.begin_view();
    let read = scan_view(pool, &connection, range, direction, FIRST_PAGE_ROWS, visit, keys).await;
    Ok(read?)
}

fn discard(pool: &Pool, session: &Arc<Session>, error: &StatementError) {
    if matches!(error, StatementError::Lost(_)) {
        pool.discard_reader(session);
    }
}

/// Scans the state that a transaction sees, and reads keys in it.
async fn scan_view(
    pool: &Pool,
    connection: &PooledConnection,
    range: &KeyRange,
    direction: Direction,
    rows_max: usize,
    visit: &mut Visitor<'_>,
    keys: &[Key],
) -> Result<Vec<Option<Value>>, StatementError> {
    let session = connection.session();
    let scan = Scan { pool, session, direction };
    let read = async {
        let keys = pool.in_time(get_rows(session, keys));
        let (page, reads) = try_join(scan.page(range, rows_max), keys).await?;
        scan.run(range.clone(), page, rows_max, visit).await?;
        Ok(values(reads))
    };
    read.await.inspect_err(|error| {
        if matches!(error, StatementError::Lost(_)) {
            connection.discard();
        }
    })
}

/// A snapshot. Its transaction begins with the first read, and ends when it is dropped or too old.
pub struct ViewSnapshot {
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

impl ViewSnapshot {
    /// With an error if the store is closed.
    pub fn new(pool: Arc<Pool>, age_max: Duration, refused: Option<Error>) -> ViewSnapshot {
        let state = refused.map_or(ViewState::New, ViewState::Ended);
        let state = Arc::new(Mutex::new(state));
        ViewSnapshot { pool, age_max, state, beginning: tokio::sync::Mutex::default() }
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

impl ViewSnapshot {
    /// Waits for the answer to a read. If there is none, the state that the snapshot shows is lost.
    async fn answered<T>(
        &self,
        connection: &PooledConnection,
        answer: impl Future<Output = Result<T, PgError>>,
    ) -> Result<T> {
        let answered = self.pool.in_time(answer).await;
        answered.map_err(|error| {
            if matches!(error, StatementError::Lost(_)) {
                connection.discard();
            }
            error.into_error()
        })
    }
}

impl Reader for ViewSnapshot {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move {
            let connection = self.connection().await?;
            let read = get_row(connection.session(), key);
            Ok(self.answered(&connection, read).await?.value)
        }
        .boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move {
            let connection = self.connection().await?;
            let read = get_rows(connection.session(), keys);
            Ok(values(self.answered(&connection, read).await?))
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
            if range.is_empty() || entries_max == Some(0) {
                return self.get_many(keys).await;
            }
            let connection = self.connection().await?;
            let rows_max = entries_max.map_or(FIRST_PAGE_ROWS, |entries| {
                entries.saturating_add(1).min(FIRST_PAGE_ROWS * 8)
            });
            let visit = &mut first_entries(entries_max, visit);
            let read = scan_view(&self.pool, &connection, &range, direction, rows_max, visit, keys);
            read.await.map_err(StatementError::into_error)
        }
        .boxed()
    }
}
