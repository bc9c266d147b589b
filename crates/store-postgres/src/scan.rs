//! Scans a range page by page on one connection.

use std::ops::ControlFlow;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use zenobe_store::{Direction, KeyRange, Visitor};

use crate::keys::{before_run, behind_run, heads, successor};
use crate::pool::Pool;
use crate::rows::value_of;
use crate::sql::Session;
use crate::statement_error::StatementError;

/// Rows of the first page, unless the caller knows how many it needs.
pub const FIRST_PAGE_ROWS: usize = 128;
const PAGE_ROWS_MAX: usize = 4000;
/// The target size of a page.
const PAGE_BYTES: usize = 1 << 20;

/// The columns after those of a value.
const HEAD: usize = 4;
const DIGEST: usize = 5;
const LONG_KEY: usize = 4;

/// Where a page ended.
enum End {
    /// At the end of the range, or where the visitor stopped.
    Over,
    /// The rest of the range may hold more.
    More(KeyRange),
    /// Before long keys with this head.
    Run(Vec<u8>),
    /// In the middle of a key's rows.
    TooSmall,
}

pub struct Scan<'s> {
    pub pool: &'s Pool,
    pub session: &'s Session,
    pub direction: Direction,
}

impl Scan<'_> {
    /// Scans on from the first page, which was requested with `rows_max`.
    pub async fn run(
        &self,
        mut range: KeyRange,
        mut page: Vec<Row>,
        mut rows_max: usize,
        visit: &mut Visitor<'_>,
    ) -> Result<(), StatementError> {
        loop {
            let mut next_rows = rows_for(&page);
            match walk(&page, page.len() == rows_max, &range, self.direction, visit) {
                End::Over => return Ok(()),
                End::More(rest) => range = rest,
                End::TooSmall => next_rows = rows_max * 4,
                End::Run(run_head) => {
                    if self.walk_run(&run_head, &range, visit).await?.is_break() {
                        return Ok(());
                    }
                    match self.direction {
                        Direction::Reverse => range = before_run(&run_head, &range),
                        Direction::Forward => match behind_run(&run_head, &range) {
                            Some(rest) => range = rest,
                            None => return Ok(()),
                        },
                    }
                }
            }
            if range.is_empty() {
                return Ok(());
            }
            rows_max = next_rows;
            page = self.page(&range, rows_max).await?;
        }
    }

    /// The next rows of a range.
    pub async fn page(
        &self,
        range: &KeyRange,
        rows_max: usize,
    ) -> Result<Vec<Row>, StatementError> {
        let (first, last) = heads(range);
        let statements = &self.session.statements;
        let statement = match self.direction {
            Direction::Forward => &statements.scan_forward,
            Direction::Reverse => &statements.scan_reverse,
        };
        let (start, end) = (&range.start[..], range.end.as_deref());
        let limit = rows_max as i64;
        let parameters: [&(dyn ToSql + Sync); 5] = [&first, &last, &start, &end, &limit];
        self.pool.in_time(self.session.client.query(statement, &parameters)).await
    }

    /// Visits the long keys with this head, in the order of the whole keys.
    async fn walk_run(
        &self,
        run_head: &[u8],
        range: &KeyRange,
        visit: &mut Visitor<'_>,
    ) -> Result<ControlFlow<()>, StatementError> {
        let statements = &self.session.statements;
        let statement = match self.direction {
            Direction::Forward => &statements.run_forward,
            Direction::Reverse => &statements.run_reverse,
        };
        let mut range = range.clone();
        let mut rows_max = FIRST_PAGE_ROWS;
        loop {
            let (start, end) = (&range.start[..], range.end.as_deref());
            let limit = rows_max as i64;
            let parameters: [&(dyn ToSql + Sync); 4] = [&run_head, &start, &end, &limit];
            let asked = self.session.client.query(statement, &parameters);
            let page = self.pool.in_time(asked).await?;
            let mut is_broken = false;
            let mut watched = |key: &[u8], value: &[u8]| {
                let flow = visit(key, value);
                is_broken = flow.is_break();
                flow
            };
            let is_full = page.len() == rows_max;
            match walk_keys(&page, is_full, &range, self.direction, long_key, &mut watched) {
                End::More(rest) => range = rest,
                End::TooSmall => rows_max *= 4,
                End::Over | End::Run(_) if is_broken => return Ok(ControlFlow::Break(())),
                End::Over | End::Run(_) => return Ok(ControlFlow::Continue(())),
            }
        }
    }
}

/// Whether a page that was requested with `rows_max` rows holds this many complete entries, or all there are.
pub fn holds(page: &[Row], rows_max: usize, entries: usize) -> bool {
    let is_full = page.len() == rows_max;
    let plain = |row: &Row| row.get::<_, i16>(0) == 0 && row.get::<_, Option<&[u8]>>(1).is_some();
    let has_run = page.iter().any(|row| !row.get::<_, &[u8]>(DIGEST).is_empty());
    !has_run && (!is_full || (page.len() > entries && page.iter().all(plain)))
}

fn walk(
    page: &[Row],
    is_full: bool,
    range: &KeyRange,
    direction: Direction,
    visit: &mut Visitor<'_>,
) -> End {
    let run = page.iter().position(|row| !row.get::<_, &[u8]>(DIGEST).is_empty());
    let Some(run) = run else {
        return walk_keys(page, is_full, range, direction, short_key, visit);
    };
    // Entries before a run of long keys are complete.
    let mut is_broken = false;
    let mut watched = |key: &[u8], value: &[u8]| {
        let flow = visit(key, value);
        is_broken = flow.is_break();
        flow
    };
    walk_keys(&page[..run], false, range, direction, short_key, &mut watched);
    if is_broken { End::Over } else { End::Run(page[run].get::<_, &[u8]>(HEAD).to_vec()) }
}

fn short_key(row: &Row) -> &[u8] {
    row.get(HEAD)
}

fn long_key(row: &Row) -> &[u8] {
    row.get(LONG_KEY)
}

/// Visits each key of the page with all its rows. The last key of a full page may have more rows.
fn walk_keys(
    page: &[Row],
    is_full: bool,
    range: &KeyRange,
    direction: Direction,
    key_of: fn(&Row) -> &[u8],
    visit: &mut Visitor<'_>,
) -> End {
    let mut keys = page.chunk_by(|left, right| key_of(left) == key_of(right)).peekable();
    let mut is_first = true;
    while let Some(rows) = keys.next() {
        let key = key_of(&rows[0]);
        if is_full && keys.peek().is_none() {
            return if is_first { End::TooSmall } else { End::More(from(key, range, direction)) };
        }
        is_first = false;
        if let Some(value) = value_of(rows.iter())
            && visit(key, &value).is_break()
        {
            return End::Over;
        }
    }
    End::Over
}

/// The rest of a range, from this key inclusive.
fn from(key: &[u8], range: &KeyRange, direction: Direction) -> KeyRange {
    match direction {
        Direction::Forward => KeyRange { start: key.to_vec().into(), end: range.end.clone() },
        Direction::Reverse => {
            KeyRange { start: range.start.clone(), end: Some(successor(key).into()) }
        }
    }
}

/// How many rows make a page, if they are as large as these.
fn rows_for(page: &[Row]) -> usize {
    let size = |row: &Row| {
        let value: Option<&[u8]> = row.get(1);
        value.map_or(0, <[u8]>::len) + 100
    };
    let mean_bytes = page.iter().map(size).sum::<usize>() / page.len().max(1);
    (PAGE_BYTES / mean_bytes.max(1)).clamp(16, PAGE_ROWS_MAX)
}
