//! The connections of a node: shared ones for reads, and exclusive ones for commits, scans and snapshots.
//!
//! They run on a runtime of their own, because each thread of the server has a runtime that other threads can't use. Any thread may
//! send requests: they and their responses pass through the client library's channels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use zenobe_store::Error;

use crate::connect::Hosts;
use crate::dialect::Dialect;
use crate::gather::Gathering;
use crate::options::Options;
use crate::sql::{BEGIN_VIEW, Session, Statements};
use crate::statement_error::StatementError;

/// How long a write's transaction may wait for its node. A node that is silent for longer is gone or paused, and all others wait for the
/// rows that it has locked.
const WRITE_IDLE_MAX: Duration = Duration::from_secs(3);
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(20);
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(500);

pub struct Pool {
    hosts: Arc<Hosts>,
    pub dialect: Dialect,
    patience: Duration,
    pub runtime: Handle,
    readers: Vec<Shared>,
    next_reader: AtomicUsize,
    pub gathering: Gathering,
    writers: Sessions,
    views: Sessions,
    connections: AtomicU64,
}

/// A connection that many requests use at the same time.
#[derive(Default)]
struct Shared {
    session: ArcSwapOption<Session>,
    connecting: tokio::sync::Mutex<()>,
}

/// Connections that serve one request at a time.
struct Sessions {
    idle: Mutex<Vec<Session>>,
    permits: Arc<Semaphore>,
    idle_in_transaction: Duration,
    closed: AtomicBool,
}

impl Sessions {
    fn new(count: usize, idle_in_transaction: Duration) -> Sessions {
        Sessions {
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(count.max(1))),
            idle_in_transaction,
            closed: AtomicBool::new(false),
        }
    }

    fn idle(&self) -> Option<Session> {
        let mut idle = self.idle.lock();
        std::iter::from_fn(|| idle.pop()).find(|session| !session.is_closed())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Write,
    View,
}

impl Pool {
    pub fn new(hosts: Arc<Hosts>, dialect: Dialect, options: &Options, runtime: Handle) -> Pool {
        Pool {
            hosts,
            dialect,
            patience: options.patience,
            runtime,
            readers: (0..options.readers.max(1)).map(|_| Shared::default()).collect(),
            next_reader: AtomicUsize::new(0),
            gathering: Gathering::new(options.readers),
            writers: Sessions::new(options.writers, WRITE_IDLE_MAX),
            views: Sessions::new(options.views, options.view_age_max + WRITE_IDLE_MAX),
            connections: AtomicU64::new(0),
        }
    }

    /// A shared connection for reads of one statement.
    pub async fn reader(self: &Arc<Pool>) -> Result<Arc<Session>, Error> {
        let number = self.next_reader.fetch_add(1, Ordering::Relaxed) % self.readers.len();
        if let Some(session) = self.open_reader(number) {
            return Ok(session);
        }
        let pool = Arc::clone(self);
        self.on_runtime(async move { pool.connect_reader(number).await }).await
    }

    fn open_reader(&self, number: usize) -> Option<Arc<Session>> {
        self.readers[number].session.load_full().filter(|session| !session.is_closed())
    }

    async fn connect_reader(&self, number: usize) -> Result<Arc<Session>, Error> {
        let _connecting = self.readers[number].connecting.lock().await;
        if let Some(session) = self.open_reader(number) {
            return Ok(session);
        }
        let session = Arc::new(self.connect(WRITE_IDLE_MAX).await?);
        self.readers[number].session.store(Some(Arc::clone(&session)));
        Ok(session)
    }

    /// Drops a connection that has failed, even if it does not look closed yet.
    pub fn discard_reader(&self, useless: &Arc<Session>) {
        for reader in &self.readers {
            if reader.session.load().as_ref().is_some_and(|session| Arc::ptr_eq(session, useless)) {
                reader.session.store(None);
            }
        }
    }

    /// An exclusive connection.
    pub async fn session(self: &Arc<Pool>, purpose: Purpose) -> Result<PooledConnection, Error> {
        let sessions = self.sessions(purpose);
        if let Ok(permit) = Arc::clone(&sessions.permits).try_acquire_owned()
            && let Some(session) = sessions.idle()
        {
            return Ok(self.pooled(purpose, session, permit));
        }
        let pool = Arc::clone(self);
        self.on_runtime(async move { pool.wait_for_session(purpose).await }).await
    }

    async fn wait_for_session(
        self: &Arc<Pool>,
        purpose: Purpose,
    ) -> Result<PooledConnection, Error> {
        let sessions = self.sessions(purpose);
        let deadline = Instant::now() + self.patience;
        let permit = timeout_at(deadline, Arc::clone(&sessions.permits).acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            let detail = "every connection to the store is in use".to_owned();
            return Err(Error::Unavailable { detail });
        };
        let session = match sessions.idle() {
            Some(session) => session,
            None => self.connect(sessions.idle_in_transaction).await?,
        };
        Ok(self.pooled(purpose, session, permit))
    }

    fn pooled(
        self: &Arc<Pool>,
        purpose: Purpose,
        session: Session,
        permit: OwnedSemaphorePermit,
    ) -> PooledConnection {
        PooledConnection {
            session: Some(session),
            purpose,
            pool: Arc::clone(self),
            is_clean: true,
            is_lost: AtomicBool::new(false),
            _permit: permit,
        }
    }

    fn sessions(&self, purpose: Purpose) -> &Sessions {
        match purpose {
            Purpose::Write => &self.writers,
            Purpose::View => &self.views,
        }
    }

    /// Connects to the host that is the primary, and retries while there is patience left. Runs on the store's runtime.
    async fn connect(&self, idle_in_transaction: Duration) -> Result<Session, Error> {
        let deadline = Instant::now() + self.patience;
        let mut pause = RETRY_PAUSE_MIN;
        loop {
            let problem = match timeout_at(deadline, self.try_connect(idle_in_transaction)).await {
                Ok(Ok(session)) => return Ok(session),
                Ok(Err(StatementError::Lost(detail))) => detail,
                Ok(Err(error)) => return Err(error.into_error()),
                Err(_) => "no response in time".to_owned(),
            };
            if Instant::now() + pause >= deadline {
                return Err(Error::Unavailable { detail: problem });
            }
            sleep(pause).await;
            pause = (pause * 2).min(RETRY_PAUSE_MAX);
        }
    }

    async fn try_connect(&self, idle_in_transaction: Duration) -> Result<Session, StatementError> {
        let client = self.hosts.connect().await?;
        self.connections.fetch_add(1, Ordering::AcqRel);
        client.batch_execute(&self.dialect.settings(idle_in_transaction)).await?;
        let statements = Statements::prepare(&client).await?;
        Ok(Session { client, statements })
    }

    /// How many connections have been opened so far.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Acquire)
    }

    /// The host that was connected to last.
    pub fn host(&self) -> String {
        self.hosts.last()
    }

    /// Runs a future that needs timers or sockets on the store's runtime.
    pub async fn on_runtime<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let aborted = |_| Err(Error::Closed);
        self.runtime.spawn(work).await.unwrap_or_else(aborted)
    }

    /// Waits for the answer to a read, for as long as the store may be away. A server that is paused keeps its connections open.
    pub async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StatementError> {
        let answer = {
            // The caller's runtime may have no timers.
            let _timers = self.runtime.enter();
            timeout(self.patience, answer)
        };
        match answer.await {
            Ok(answered) => Ok(answered?),
            Err(_) => Err(StatementError::Lost("no response in time".to_owned())),
        }
    }

    pub fn patience(&self) -> Patience {
        Patience { until: std::time::Instant::now() + self.patience }
    }

    pub fn is_closed(&self) -> bool {
        self.writers.closed.load(Ordering::Acquire)
    }

    /// Closes every idle connection.
    pub fn close(&self) {
        for sessions in [&self.writers, &self.views] {
            sessions.closed.store(true, Ordering::Release);
            sessions.idle.lock().clear();
        }
        self.readers.iter().for_each(|reader| reader.session.store(None));
    }
}

/// How long a request keeps retrying.
pub struct Patience {
    until: std::time::Instant,
}

impl Patience {
    /// Whether to retry a read after this error. The error says why not.
    pub fn bear(
        &self,
        pool: &Pool,
        session: &Arc<Session>,
        error: StatementError,
    ) -> Result<(), Error> {
        match error {
            StatementError::Lost(detail) => {
                pool.discard_reader(session);
                self.bear_loss(detail)
            }
            // A read under SERIALIZABLE in the other databases.
            StatementError::Conflict if self.is_left() => Ok(()),
            error => Err(error.into_error()),
        }
    }

    pub fn bear_loss(&self, detail: String) -> Result<(), Error> {
        if self.is_left() { Ok(()) } else { Err(Error::Unavailable { detail }) }
    }

    pub fn is_left(&self) -> bool {
        std::time::Instant::now() < self.until
    }
}

/// An exclusive connection, which returns to the pool when it is dropped.
pub struct PooledConnection {
    session: Option<Session>,
    purpose: Purpose,
    pool: Arc<Pool>,
    /// Whether it is outside a transaction, ready for its next user.
    is_clean: bool,
    /// Whether it has failed, even if it does not look closed yet.
    is_lost: AtomicBool,
    _permit: OwnedSemaphorePermit,
}

impl PooledConnection {
    pub fn session(&self) -> &Session {
        self.session.as_ref().expect("the session stays until the connection is dropped")
    }

    /// Begins a transaction without waiting for the response.
    pub fn begin_view(&mut self) {
        self.is_clean = false;
        let _sent = self.session().client.batch_execute(BEGIN_VIEW).now_or_never();
    }

    pub fn begin_write(&mut self) {
        self.is_clean = false;
        let begin = self.pool.dialect.begin_write();
        let _sent = self.session().client.batch_execute(begin).now_or_never();
    }

    /// Keeps others from using it.
    pub fn discard(&self) {
        self.is_lost.store(true, Ordering::Release);
    }

    /// Call this when the transaction has ended.
    pub fn ended(&mut self) {
        self.is_clean = true;
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        if *self.is_lost.get_mut() {
            return;
        }
        if !self.is_clean {
            // The server executes it before anything that is sent later.
            let _sent = session.client.batch_execute("ROLLBACK").now_or_never();
        }
        let sessions = self.pool.sessions(self.purpose);
        if !session.is_closed() && !sessions.closed.load(Ordering::Acquire) {
            sessions.idle.lock().push(session);
        }
    }
}
