//! Standbys that answer reads which may be slightly stale, and the proof that they are not staler than allowed.
//!
//! A sampler asks the primary several times per allowed lag how much of its log is on disk. Everything that was committed before
//! the question lies before that position, so a standby that has replayed up to it shows everything that the primary had when it
//! was asked. Times come from this node's monotonic clock: clocks of machines are never compared, and an idle primary does not
//! make its standbys look late.
//!
//! A standby that restarts may show an older state for a moment. So a new connection to it discards what is known
//! of it, and a read during which one was made does not count.
//!
//! Two transactions may become visible in a different order on a standby than on the primary, even in healthy clusters. So only
//! eventually consistent reads may use standbys.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;
use tokio::time::sleep;
use zenobe_store::{Direction, Error, Key, KeyRange, Reader, Replica, Result, Value, Visitor};

use crate::connect::Hosts;
use crate::options::Options;
use crate::pool::Pool;
use crate::statement_error::StatementError;
use crate::tls::Connector;
use crate::url::ServerUrl;
use crate::{OwnedRuntime, gather, read, view};

/// How long a read waits for a standby, to connect and to answer, before it goes to the primary.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long to skip a host that is unreachable or not a standby.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

const FLUSHED: &str = "SELECT CAST(pg_current_wal_flush_lsn() - '0/0' AS int8)";
const REPLAYED: &str = "SELECT CAST(pg_last_wal_replay_lsn() - '0/0' AS int8)";

pub struct Standbys {
    all: Vec<Arc<Standby>>,
    lag_max: Duration,
    samples: Mutex<VecDeque<Sample>>,
    next: AtomicUsize,
}

/// How far the primary's log reached at some moment, at least.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Instant,
    position: i64,
}

struct Standby {
    pool: Arc<Pool>,
    proof: Mutex<Option<Proof>>,
}

/// Proof that a standby shows everything that was committed at `as_of`, through connections that were open at that time.
#[derive(Debug, Clone, Copy)]
struct Proof {
    as_of: Instant,
    connections: u64,
}

impl Standbys {
    /// Every host is asked; those that are standbys answer.
    pub fn watch(
        target: &ServerUrl,
        connector: &Connector,
        primary: &Arc<Pool>,
        options: &Options,
        lag_max: Duration,
    ) -> Arc<Standbys> {
        let options = Options { patience: PATIENCE, readers: 2, writers: 1, ..options.clone() };
        let standby = |target| {
            let hosts = Arc::new(Hosts::new(target, connector.clone()));
            let pool = Pool::new(hosts, primary.dialect, &options, primary.runtime.clone());
            Arc::new(Standby { pool: Arc::new(pool), proof: Mutex::default() })
        };
        let standbys = Arc::new(Standbys {
            all: target.standbys().map(standby).collect(),
            lag_max,
            samples: Mutex::default(),
            next: AtomicUsize::new(0),
        });
        primary.runtime.spawn(sample(Arc::downgrade(&standbys), Arc::downgrade(primary)));
        for standby in &standbys.all {
            let (all, one) = (Arc::downgrade(&standbys), Arc::downgrade(standby));
            primary.runtime.spawn(prove(all, one));
        }
        standbys
    }

    /// A standby that is close enough. Takes them in turn.
    pub fn choose(&self, runtime: &Arc<OwnedRuntime>, view_age_max: Duration) -> Option<OnStandby> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let mut turns = (0..self.all.len()).map(|step| &self.all[(first + step) % self.all.len()]);
        turns.find_map(|standby| {
            let proof = standby.proven(self.lag_max)?;
            Some(OnStandby {
                standby: Arc::clone(standby),
                connections: proof.connections,
                view_age_max,
                runtime: Arc::clone(runtime),
            })
        })
    }

    /// Every host, and how far behind it is at most. `None` where nothing is known: it is not a standby, or away.
    pub fn behind(&self) -> Vec<(String, Option<Duration>)> {
        let behind = |standby: &Arc<Standby>| {
            let proof = standby.proven(Duration::MAX);
            (standby.pool.host(), proof.map(|proof| proof.as_of.elapsed()))
        };
        self.all.iter().map(behind).collect()
    }

    pub fn close(&self) {
        self.all.iter().for_each(|standby| standby.pool.close());
    }

    /// Several samples fit into the lag that is allowed, so that a standby that follows closely is always near enough.
    fn period(&self) -> Duration {
        (self.lag_max / 4).clamp(Duration::from_millis(10), Duration::from_millis(500))
    }

    fn add(&self, sample: Sample) {
        let mut samples = self.samples.lock();
        samples.push_back(sample);
        while samples.front().is_some_and(|oldest| oldest.at.elapsed() > self.lag_max) {
            samples.pop_front();
        }
    }

    /// The latest moment whose commits are all visible on a standby that has replayed up to this position.
    fn as_of(&self, replayed: i64) -> Option<Instant> {
        let samples = self.samples.lock();
        samples.iter().rev().find(|sample| sample.position <= replayed).map(|sample| sample.at)
    }
}

impl Standby {
    fn proven(&self, lag_max: Duration) -> Option<Proof> {
        let proof = (*self.proof.lock())?;
        let is_near = proof.as_of.elapsed() <= lag_max;
        (is_near && proof.connections == self.pool.connections()).then_some(proof)
    }
}

/// Asks the primary, until the store is closed.
async fn sample(standbys: Weak<Standbys>, primary: Weak<Pool>) {
    loop {
        let (Some(standbys), Some(primary)) = (standbys.upgrade(), primary.upgrade()) else {
            return;
        };
        if primary.is_closed() {
            return;
        }
        let at = Instant::now();
        if let Ok(position) = position(&primary, FLUSHED).await {
            standbys.add(Sample { at, position });
        }
        let period = standbys.period();
        drop((standbys, primary));
        sleep(period).await;
    }
}

/// Asks one standby, until the store is closed.
async fn prove(standbys: Weak<Standbys>, standby: Weak<Standby>) {
    loop {
        let (Some(standbys), Some(standby)) = (standbys.upgrade(), standby.upgrade()) else {
            return;
        };
        if standby.pool.is_closed() {
            return;
        }
        let mut pause = standbys.period();
        match standby.pool.reader().await {
            Ok(_) => {
                // Whatever is opened from now on is not covered.
                let connections = standby.pool.connections();
                if let Ok(replayed) = position(&standby.pool, REPLAYED).await
                    && let Some(as_of) = standbys.as_of(replayed)
                {
                    *standby.proof.lock() = Some(Proof { as_of, connections });
                }
            }
            Err(error) => {
                tracing::debug!(%error, "host skipped: not a usable standby");
                pause = RETRY_PAUSE;
            }
        }
        drop((standbys, standby));
        sleep(pause).await;
    }
}

async fn position(pool: &Arc<Pool>, query: &str) -> Result<i64> {
    let session = pool.reader().await?;
    let row = pool.in_time(session.client.query_one(query, &[])).await.map_err(|error| {
        if matches!(error, StatementError::Lost(_)) {
            pool.discard_reader(&session);
        }
        error.into_error()
    })?;
    row.try_get(0).map_err(|error| StatementError::from(error).into_error())
}

/// A standby that was near enough when it was chosen.
pub struct OnStandby {
    standby: Arc<Standby>,
    connections: u64,
    view_age_max: Duration,
    runtime: Arc<OwnedRuntime>,
}

impl OnStandby {
    fn pool(&self) -> &Arc<Pool> {
        &self.standby.pool
    }
}

/// Refuses what came through a connection that the proof does not cover.
fn covered<T>(pool: &Pool, connections: u64, read: Result<T>) -> Result<T> {
    let read = read?;
    match pool.connections() == connections {
        true => Ok(read),
        false => {
            let detail = "a standby was connected to again".to_owned();
            Err(Error::Unavailable { detail })
        }
    }
}

impl Replica for OnStandby {
    fn snapshot(&self) -> Arc<dyn Reader> {
        let pool = Arc::clone(self.pool());
        Arc::new(StandbySnapshot {
            snapshot: view::ViewSnapshot::new(Arc::clone(&pool), self.view_age_max, None),
            pool,
            connections: self.connections,
            _runtime: Arc::clone(&self.runtime),
        })
    }
}

impl Reader for OnStandby {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move {
            let read = self.get_many(&[Key::copy_from_slice(key)]).await?;
            Ok(read.into_iter().next().flatten())
        }
        .boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move {
            let read = gather::read_keys(self.pool(), keys).await.map(read::values);
            covered(self.pool(), self.connections, read)
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
            let (pool, states) = (self.pool(), view::States::Behind);
            let read = view::scan(pool, states, range, direction, entries_max, visit, keys).await;
            covered(pool, self.connections, read)
        }
        .boxed()
    }
}

/// One state of a standby.
struct StandbySnapshot {
    snapshot: view::ViewSnapshot,
    pool: Arc<Pool>,
    connections: u64,
    _runtime: Arc<OwnedRuntime>,
}

impl Reader for StandbySnapshot {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move { covered(&self.pool, self.connections, self.snapshot.get(key).await) }.boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move { covered(&self.pool, self.connections, self.snapshot.get_many(keys).await) }
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
            let (snapshot, pool) = (&self.snapshot, &self.pool);
            let read = snapshot.scan_then_get(range, direction, entries_max, visit, keys).await;
            covered(pool, self.connections, read)
        }
        .boxed()
    }
}
