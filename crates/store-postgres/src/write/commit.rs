//! Commits a group as one transaction, pipelined: nothing waits for a response before COMMIT.
//!
//! Locks are taken in key order: first on the rows that decisions saw, then on keys that they saw absent, then on counters, and last
//! on the ends of logs and on clocks. So groups can't deadlock unless one declares a key to which another adds, or two nodes add to the
//! same slots, one to new counters and one to known ones (PostgreSQL then ends one of them, which is a conflict). Hot rows are locked for
//! the shortest time. A row that was seen and gets a new value is locked, validated
//! and replaced at once.
//!
//! A row lock needs a row. So a key that was seen absent is inserted, which fails if it exists: with its value if it gets one,
//! otherwise as a placeholder that the same transaction deletes. Until the transaction ends, no other can insert the key.

use std::collections::BTreeMap;
use std::convert::Infallible;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error as PgError, Statement};
use zenobe_store::stamp::{stamp_of, stamped_key};
use zenobe_store::{Error, Key, LogEnd, encode_log_entry, log_entry_key};

use super::effects::{Append, Effect, Ticks, WritePhase};
use super::group::{Expected, Group};
use super::resolve::{Begun, Resolved, resolve};
use crate::keys::{Digest, head, heads, whole};
use crate::pool::{Pool, PooledConnection, Purpose};
use crate::sql::Session;
use crate::statement_error::StatementError;
use zenobe_store::key_map::KeySet;

pub enum Outcome {
    /// With the sequence numbers of all appends, in order.
    Committed(Vec<u64>),
    Conflict,
    NoCounter,
    /// The connection was lost, and nothing was committed.
    Lost(String),
    Failed(Error),
}

impl From<StatementError> for Outcome {
    fn from(error: StatementError) -> Outcome {
        match error {
            StatementError::Conflict => Outcome::Conflict,
            StatementError::NoCounter => Outcome::NoCounter,
            StatementError::Lost(detail) => Outcome::Lost(detail),
            error @ StatementError::Refused(_) => Outcome::Failed(error.into_error()),
        }
    }
}

type Parameter<'a> = &'a (dyn ToSql + Sync);
/// Statements that were sent and not answered yet. The server executes them in the order of sending.
type Sent<'a> = Vec<BoxFuture<'a, Result<(), PgError>>>;

pub async fn commit(pool: &std::sync::Arc<Pool>, group: &Group) -> Outcome {
    let mut connection = match pool.session(Purpose::Write).await {
        Ok(connection) => connection,
        Err(error) => return Outcome::Failed(error),
    };
    let id: [u8; 16] = rand::random();
    connection.begin_write();
    let begun = Begun::now();
    let (sequences, ended) = transact(&connection, group, &id).await;
    let detail = match ended {
        Ended::Committed => {
            connection.ended();
            return Outcome::Committed(sequences);
        }
        // For a failed transaction, COMMIT and ROLLBACK do the same.
        Ended::Not(error) => return error.into(),
        Ended::Unknown(detail) => detail,
    };
    drop(connection);
    match resolve(pool, &id, &begun).await {
        Resolved::Committed => Outcome::Committed(sequences),
        Resolved::NotCommitted => Outcome::Lost(detail),
        Resolved::Unknown(detail) => Outcome::Failed(Error::Uncertain { detail }),
    }
}

enum Ended {
    Committed,
    Not(StatementError),
    /// The connection was lost after COMMIT had been sent.
    Unknown(String),
}

/// Sends the transaction's statements and COMMIT, and returns how it ended.
async fn transact(connection: &PooledConnection, group: &Group, id: &[u8]) -> (Vec<u64>, Ended) {
    let session = connection.session();
    let reads = in_order(&group.reads);
    let expected = Expectations::of(group, &reads);
    let mut sequences = Vec::with_capacity(group.appends());
    let last = group.segments.len() - 1;
    for (number, segment) in group.segments.iter().enumerate() {
        let revision = group.revision + number as i64;
        let claims = if number == 0 { Claims::of(group, &reads) } else { Claims::default() };
        let is_replaced = |key: &Key| number == 0 && expected.replaces(group, key);
        let changes = Changes::of(segment, &claims, &is_replaced, &group.unmarked_counters);
        let logs = Logs::of(segment);
        let mut sent: Sent<'_> = Vec::new();
        if number == 0 {
            expected.send(session, &revision, &mut sent);
            claims.send(session, &revision, &mut sent);
        }
        send_removals(session, segment, &mut sent);
        changes.send(session, &revision, &group.slot, &mut sent);
        if logs.names.is_empty() {
            if number == last {
                return (sequences, send_end(session, sent, id).await);
            }
            if let Err(error) = first_error(sent).await {
                return (sequences, Ended::Not(error));
            }
            continue;
        }
        let ends = match lock_logs(session, &logs, sent).await {
            Ok(ends) => ends,
            Err(error) => return (sequences, Ended::Not(error)),
        };
        let entries = Entries::of(segment, ends);
        sequences.extend(&entries.sequences);
        let changes = entries.changes();
        let mut sent: Sent<'_> = Vec::new();
        changes.send(session, &revision, &group.slot, &mut sent);
        entries.send_ends(session, &mut sent);
        if number == last {
            return (sequences, send_end(session, sent, id).await);
        }
        if let Err(error) = first_error(sent).await {
            return (sequences, Ended::Not(error));
        }
    }
    unreachable!("the last segment ends the transaction")
}

/// Entries in the order of their keys, in which everybody locks rows.
fn in_order<'a, V>(entries: impl IntoIterator<Item = (&'a Key, &'a V)>) -> Vec<(&'a Key, &'a V)> {
    let mut sorted: Vec<_> = entries.into_iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    sorted
}

fn send<'a, const N: usize>(
    session: &'a Session,
    statement: &'a Statement,
    parameters: [Parameter<'a>; N],
) -> BoxFuture<'a, Result<(), PgError>> {
    async move { session.client.query(statement, &parameters).await.map(drop) }.boxed()
}

async fn first_error(sent: Sent<'_>) -> Result<(), StatementError> {
    let results = join_all(sent).await;
    Ok(results.into_iter().collect::<Result<(), PgError>>()?)
}

/// Records the group's id and commits, in one round trip with the statements before.
async fn send_end<'a>(session: &'a Session, mut sent: Sent<'a>, id: &'a [u8]) -> Ended {
    let statements = &session.statements;
    let record = async move {
        session.client.execute(&statements.record_commit, &[&id, &false]).await.map(drop)
    };
    sent.push(record.boxed());
    sent.push(session.client.batch_execute("COMMIT").boxed());
    for result in join_all(sent).await {
        match result.map_err(StatementError::from) {
            Ok(()) => {}
            // COMMIT may have taken effect nevertheless.
            Err(StatementError::Lost(detail)) => return Ended::Unknown(detail),
            // The server rejected everything after it.
            Err(error) => return Ended::Not(error),
        }
    }
    Ended::Committed
}

/// Keys, as columns of parameters.
#[derive(Default)]
struct Names<'a> {
    heads: Vec<&'a [u8]>,
    digests: Vec<Digest>,
    wholes: Vec<Option<&'a [u8]>>,
}

impl<'a> Names<'a> {
    fn push(&mut self, key: &'a [u8]) {
        self.heads.push(head(key));
        self.digests.push(Digest::of(key));
        self.wholes.push(whole(key));
    }

    fn digests(&self) -> Vec<&[u8]> {
        self.digests.iter().map(Digest::bytes).collect()
    }

    fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }
}

/// The rows that decisions saw, in key order, in runs of those that are confirmed alike.
struct Expectations<'a> {
    runs: Vec<Run<'a>>,
    replaces: bool,
}

struct Run<'a> {
    confirmation: Confirmation,
    names: Names<'a>,
    revisions: Vec<i64>,
    /// Of those that are replaced.
    values: Vec<&'a [u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Confirmation {
    Share,
    Lock,
    Replace,
}

/// Each run is a statement. Where rows that are replaced and rows that are only locked alternate too often, all are locked first and
/// put afterwards.
const RUNS_MAX: usize = 6;

impl<'a> Expectations<'a> {
    fn of(group: &'a Group, reads: &[(&'a Key, &'a Expected)]) -> Expectations<'a> {
        let replacing = Expectations::with(group, reads, true);
        match replacing.runs.len() <= RUNS_MAX {
            true => replacing,
            false => Expectations::with(group, reads, false),
        }
    }

    fn with(
        group: &'a Group,
        reads: &[(&'a Key, &'a Expected)],
        replaces: bool,
    ) -> Expectations<'a> {
        let mut runs: Vec<Run<'a>> = Vec::new();
        for &(key, expected) in reads {
            let Expected { revision: Some(revision), is_exclusive } = *expected else { continue };
            let replacement = replacement(group, key).filter(|_| replaces);
            let confirmation = match (is_exclusive, replacement) {
                (false, _) => Confirmation::Share,
                (true, None) => Confirmation::Lock,
                (true, Some(_)) => Confirmation::Replace,
            };
            if runs.last().is_none_or(|run| run.confirmation != confirmation) {
                runs.push(Run::new(confirmation));
            }
            let run = runs.last_mut().expect("one was just pushed");
            run.names.push(key);
            run.revisions.push(revision);
            run.values.extend(replacement.filter(|_| is_exclusive));
        }
        Expectations { runs, replaces }
    }

    /// Whether confirming what was seen of the key also puts its new value.
    fn replaces(&self, group: &Group, key: &Key) -> bool {
        let is_seen = group
            .reads
            .get(key)
            .is_some_and(|expected| expected.is_exclusive && expected.revision.is_some());
        self.replaces && is_seen && replacement(group, key).is_some()
    }

    fn send(&'a self, session: &'a Session, revision: &'a i64, sent: &mut Sent<'a>) {
        sent.extend(self.runs.iter().map(|run| run.send(session, revision)));
    }
}

/// The value that the group's first segment puts. A range that is deleted first would delete it too, so that is put afterwards.
fn replacement<'a>(group: &'a Group, key: &Key) -> Option<&'a [u8]> {
    let WritePhase { entries, ranges, .. } = &group.segments[0];
    match entries.get(key) {
        Some(Effect::Put(_)) if ranges.iter().any(|range| range.contains(key)) => None,
        Some(Effect::Put(value)) => Some(value),
        _ => None,
    }
}

impl<'a> Run<'a> {
    fn new(confirmation: Confirmation) -> Run<'a> {
        Run { confirmation, names: Names::default(), revisions: Vec::new(), values: Vec::new() }
    }

    fn send(
        &'a self,
        session: &'a Session,
        revision: &'a i64,
    ) -> BoxFuture<'a, Result<(), PgError>> {
        let Session { client, statements } = session;
        async move {
            let Names { heads, wholes, .. } = &self.names;
            let (digests, count) = (self.names.digests(), self.revisions.len() as i64);
            let validation: [Parameter<'_>; 4] = [heads, &digests, &self.revisions, &count];
            let rows = match self.confirmation {
                Confirmation::Share => client.query(&statements.validate_shared, &validation).await,
                Confirmation::Lock => {
                    client.query(&statements.validate_exclusive, &validation).await
                }
                Confirmation::Replace => {
                    let parameters: [Parameter<'_>; 7] =
                        [heads, &digests, wholes, &self.values, &self.revisions, revision, &count];
                    client.query(&statements.replace, &parameters).await
                }
            };
            rows.map(drop)
        }
        .boxed()
    }
}

/// Keys that decisions saw absent, with their new values.
#[derive(Default)]
struct Claims<'a> {
    names: Names<'a>,
    values: Vec<Option<&'a [u8]>>,
    keys: Vec<&'a Key>,
}

impl<'a> Claims<'a> {
    fn of(group: &'a Group, reads: &[(&'a Key, &'a Expected)]) -> Claims<'a> {
        let mut claims = Claims::default();
        for &(key, expected) in reads {
            if expected.revision.is_some() {
                continue;
            }
            claims.names.push(key);
            claims.keys.push(key);
            claims.values.push(replacement(group, key));
        }
        claims
    }

    fn contains(&self, key: &Key) -> bool {
        self.keys.binary_search(&key).is_ok()
    }

    /// Whether the claim puts the key's value, too.
    fn has_value(&self, key: &Key) -> bool {
        self.keys.binary_search(&key).is_ok_and(|position| self.values[position].is_some())
    }

    fn send(&'a self, session: &'a Session, revision: &'a i64, sent: &mut Sent<'a>) {
        if self.names.is_empty() {
            return;
        }
        let statement = &session.statements.claim;
        sent.push(send_rows(session, statement, &self.names, &self.values, revision));
    }
}

fn send_rows<'a>(
    session: &'a Session,
    statement: &'a Statement,
    names: &'a Names<'a>,
    values: &'a [Option<&'a [u8]>],
    revision: &'a i64,
) -> BoxFuture<'a, Result<(), PgError>> {
    async move {
        let digests = names.digests();
        let parameters: [Parameter<'_>; 5] =
            [&names.heads, &digests, &names.wholes, &values, revision];
        session.client.execute(statement, &parameters).await.map(drop)
    }
    .boxed()
}

/// A segment's changes of single keys.
#[derive(Default)]
struct Changes<'a> {
    puts: Names<'a>,
    values: Vec<Option<&'a [u8]>>,
    deletes: Names<'a>,
    additions: Additions<'a>,
    /// To counters whose rows may have to be created first.
    first_additions: Additions<'a>,
}

#[derive(Default)]
struct Additions<'a> {
    counters: Names<'a>,
    deltas: Vec<String>,
}

impl<'a> Changes<'a> {
    fn of(
        segment: &'a WritePhase,
        claims: &Claims<'a>,
        is_replaced: &dyn Fn(&Key) -> bool,
        unmarked_counters: &KeySet<Key>,
    ) -> Changes<'a> {
        let mut changes = Changes::default();
        for (key, value) in claims.keys.iter().zip(&claims.values) {
            if value.is_none() && !matches!(segment.entries.get(*key), Some(Effect::Put(_))) {
                changes.deletes.push(key);
            }
        }
        // Most are put as they are confirmed.
        let left = segment.entries.iter().filter(|(key, effect)| match effect {
            Effect::Put(_) => !claims.has_value(key) && !is_replaced(key),
            Effect::Delete => !claims.contains(key),
            Effect::Add(_) => true,
        });
        for (key, effect) in in_order(left) {
            match effect {
                Effect::Put(value) => changes.put(key, value),
                Effect::Delete => changes.deletes.push(key),
                Effect::Add(0) => {}
                Effect::Add(delta) if unmarked_counters.contains(key) => {
                    changes.first_additions.push(key, *delta);
                }
                Effect::Add(delta) => changes.additions.push(key, *delta),
            }
        }
        changes
    }

    fn put(&mut self, key: &'a [u8], value: &'a [u8]) {
        self.puts.push(key);
        self.values.push(Some(value));
    }

    fn send(&'a self, session: &'a Session, revision: &'a i64, slot: &'a i16, sent: &mut Sent<'a>) {
        let statements = &session.statements;
        if !self.puts.is_empty() {
            let put = send_rows(session, &statements.put, &self.puts, &self.values, revision);
            sent.push(put);
        }
        if !self.deletes.is_empty() {
            let delete = async move {
                let digests = self.deletes.digests();
                let parameters: [Parameter<'_>; 2] = [&self.deletes.heads, &digests];
                session.client.execute(&statements.delete, &parameters).await.map(drop)
            };
            sent.push(delete.boxed());
        }
        // New counters come first. Other groups add to the known ones as well, so those are locked last.
        if !self.first_additions.deltas.is_empty() {
            sent.push(self.first_additions.mark(session, revision));
            sent.push(self.first_additions.add(session, &statements.add_first, slot));
        }
        if !self.additions.deltas.is_empty() {
            sent.push(self.additions.add(session, &statements.add, slot));
        }
    }
}

impl<'a> Additions<'a> {
    fn push(&mut self, counter: &'a Key, delta: i64) {
        self.counters.push(counter);
        self.deltas.push(delta.to_string());
    }

    /// Creates the rows of the counters that have none.
    fn mark(
        &'a self,
        session: &'a Session,
        revision: &'a i64,
    ) -> BoxFuture<'a, Result<(), PgError>> {
        async move {
            let digests = self.counters.digests();
            let parameters: [Parameter<'_>; 4] =
                [&self.counters.heads, &digests, &self.counters.wholes, revision];
            session.client.execute(&session.statements.mark_counters, &parameters).await.map(drop)
        }
        .boxed()
    }

    fn add(
        &'a self,
        session: &'a Session,
        statement: &'a Statement,
        slot: &'a i16,
    ) -> BoxFuture<'a, Result<(), PgError>> {
        async move {
            let (digests, count) = (self.counters.digests(), self.deltas.len() as i64);
            let Names { heads, wholes, .. } = &self.counters;
            let parameters: [Parameter<'_>; 6] =
                [heads, &digests, wholes, &self.deltas, slot, &count];
            session.client.query(statement, &parameters).await.map(drop)
        }
        .boxed()
    }
}

/// Ranges and logs that go, and logs whose end is set.
fn send_removals<'a>(session: &'a Session, segment: &'a WritePhase, sent: &mut Sent<'a>) {
    for range in segment.ranges.iter().filter(|range| !range.is_empty()) {
        let delete = async move {
            let (first, last) = heads(range);
            let (start, end) = (&range.start[..], range.end.as_deref());
            let parameters: [Parameter<'_>; 4] = [&first, &last, &start, &end];
            session.client.execute(&session.statements.delete_range, &parameters).await.map(drop)
        };
        sent.push(delete.boxed());
    }
    if !segment.forgotten.is_empty() {
        let forget = async move {
            let logs: Vec<&[u8]> = segment.forgotten.iter().map(|log| &log[..]).collect();
            session.client.execute(&session.statements.forget_logs, &[&logs]).await.map(drop)
        };
        sent.push(forget.boxed());
    }
    if !segment.log_ends.is_empty() {
        let set = async move {
            let logs: Vec<&[u8]> = segment.log_ends.keys().map(|log| &log[..]).collect();
            let ends = || segment.log_ends.values();
            let lasts: Vec<i64> = ends().map(|end| end.sequence as i64).collect();
            let stamps: Vec<i64> = ends().map(|end| end.stamp as i64).collect();
            let parameters: [Parameter<'_>; 3] = [&logs, &lasts, &stamps];
            session.client.execute(&session.statements.set_logs, &parameters).await.map(drop)
        };
        sent.push(set.boxed());
    }
}

/// The logs that a segment appends to and the clocks that it reads, in key order.
struct Logs<'a> {
    names: Vec<&'a [u8]>,
}

impl<'a> Logs<'a> {
    fn of(segment: &'a WritePhase) -> Logs<'a> {
        let logs = segment.appends.iter().map(|append| &append.log);
        let clocks = segment.ticks.iter().flat_map(Ticks::clocks);
        let mut names: Vec<&[u8]> = logs.chain(clocks).map(|name| &name[..]).collect();
        names.sort_unstable();
        names.dedup();
        Logs { names }
    }
}

/// Locks the ends of the logs, after everything else. The commit follows as soon as they are known.
async fn lock_logs<'a>(
    session: &'a Session,
    logs: &'a Logs<'a>,
    mut sent: Sent<'a>,
) -> Result<BTreeMap<Vec<u8>, LogEnd>, StatementError> {
    sent.push(send(session, &session.statements.create_logs, [&logs.names]));
    let parameters: [Parameter<'_>; 1] = [&logs.names];
    let before = join_all(sent);
    let lock = session.client.query(&session.statements.lock_logs, &parameters);
    let (before, locked) = futures_util::future::join(before, lock).await;
    before.into_iter().collect::<Result<(), PgError>>()?;
    let end = |row: tokio_postgres::Row| {
        let (sequence, stamp): (i64, i64) = (row.get(1), row.get(2));
        (row.get(0), LogEnd { sequence: sequence as u64, stamp: stamp as u64 })
    };
    let ends: BTreeMap<Vec<u8>, LogEnd> = locked?.into_iter().map(end).collect();
    // Another write has dropped the log since it was created.
    if ends.len() < logs.names.len() { Err(StatementError::Conflict) } else { Ok(ends) }
}

/// The new entries of the logs, numbered and stamped, and what carries the stamps of clocks.
struct Entries {
    rows: Vec<(Key, Vec<u8>)>,
    sequences: Vec<u64>,
    logs: Vec<Vec<u8>>,
    lasts: Vec<i64>,
    stamps: Vec<i64>,
}

impl Entries {
    fn of(segment: &WritePhase, mut ends: BTreeMap<Vec<u8>, LogEnd>) -> Entries {
        let mut rows = Vec::with_capacity(segment.appends.len());
        let mut sequences = Vec::with_capacity(segment.appends.len());
        for Append { log, stamp, value } in &segment.appends {
            let end = ends.entry(log.to_vec()).or_default();
            *end = end.append(*stamp);
            let mut entry = Vec::with_capacity(size_of::<u64>() + value.len());
            encode_log_entry(end.stamp, value, &mut entry);
            rows.push((log_entry_key(log, end.sequence), entry));
            sequences.push(end.sequence);
        }
        segment.ticks.iter().for_each(|ticks| tick(ticks, &mut ends, &mut rows));
        rows.sort_by(|left, right| left.0.cmp(&right.0));
        // A batch may put the same stamped key twice, and one statement must not write a row twice.
        rows.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                std::mem::swap(later, earlier);
            }
            is_same
        });
        Entries {
            rows,
            sequences,
            lasts: ends.values().map(|end| end.sequence as i64).collect(),
            stamps: ends.values().map(|end| end.stamp as i64).collect(),
            logs: ends.into_keys().collect(),
        }
    }

    /// With log entries and stamped keys.
    fn changes(&self) -> Changes<'_> {
        let mut changes = Changes::default();
        self.rows.iter().for_each(|(key, entry)| changes.put(key, entry));
        changes
    }

    fn send_ends<'a>(&'a self, session: &'a Session, sent: &mut Sent<'a>) {
        let parameters: [Parameter<'a>; 3] = [&self.logs, &self.lasts, &self.stamps];
        sent.push(send(session, &session.statements.move_logs, parameters));
    }
}

/// Carries out what one batch does with clocks. They are locked, so the next reader of a clock sees what this leaves.
fn tick(ticks: &Ticks, clocks: &mut BTreeMap<Vec<u8>, LogEnd>, rows: &mut Vec<(Key, Vec<u8>)>) {
    let advance = |clocks: &mut BTreeMap<Vec<u8>, LogEnd>, clock: &Key, to| {
        let end = clocks.entry(clock.to_vec()).or_default();
        *end = end.advance(to);
    };
    match ticks {
        Ticks::Advance { clock, to } => advance(clocks, clock, *to),
        Ticks::Puts(puts) => {
            let shown = |clock: &Key| {
                let end = clocks.get(&clock[..]).copied().unwrap_or_default();
                Ok::<_, Infallible>(end.clock())
            };
            let Ok(stamp) = stamp_of(puts, shown);
            for put in puts {
                advance(clocks, &put.clock, stamp);
                rows.push((stamped_key(&put.key, stamp), put.value.to_vec()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use zenobe_store::Batch;

    use super::super::effects::segments;
    use super::super::group::SeenKey;
    use super::*;
    use crate::answers::Asker;

    #[test]
    fn rows_are_locked_in_key_order_whatever_came_first() {
        const KEYS: u64 = 200;
        let mut group = Group::new(1, 7, false);
        for number in (0..KEYS).map(|number| number * 77 % KEYS) {
            let key = Key::from(format!("k{number:03}"));
            let mut batch = Batch::new();
            match number % 4 {
                3 => batch.delete(key.clone()),
                _ => batch.put(key.clone(), number.to_string()),
            }
            batch.add(format!("c{number:03}"), 1);
            let revision = (number % 2 == 0).then_some(number as i64);
            let expected = Expected { revision, is_exclusive: true };
            let seen = [SeenKey { key: &key, expected, in_group: None }];
            group.join(&seen, segments(batch).unwrap(), Asker::new().0).unwrap();
        }
        let numbered = |letter, wanted: fn(&u64) -> bool| -> Vec<Vec<u8>> {
            let numbers = (0..KEYS).filter(wanted);
            numbers.map(|number| format!("{letter}{number:03}").into_bytes()).collect()
        };
        let reads = in_order(&group.reads);
        let expectations = Expectations::of(&group, &reads);
        let [run] = &expectations.runs[..] else { panic!("all are replaced") };
        assert_eq!(run.confirmation, Confirmation::Replace);
        assert_eq!(run.names.heads, numbered('k', |number| number % 2 == 0));
        assert!(run.revisions.is_sorted());
        let claims = Claims::of(&group, &reads);
        assert_eq!(claims.names.heads, numbered('k', |number| number % 2 == 1));
        assert!(
            claims.values.iter().map(Option::is_some).eq((0..KEYS / 4).flat_map(|_| [true, false]))
        );
        let is_replaced = |key: &Key| expectations.replaces(&group, key);
        let changes = Changes::of(&group.segments[0], &claims, &is_replaced, &KeySet::default());
        assert!(changes.puts.is_empty());
        assert_eq!(changes.deletes.heads, numbered('k', |number| number % 4 == 3));
        assert_eq!(changes.additions.counters.heads, numbered('c', |_| true));
    }
}
